#!/bin/bash
# Runs a command with a Docker engine of another version. The engine is built from its Go module and
# started in separate network and mount namespaces, where it listens at the default socket. The
# machine's own engine is not affected. Needs root, Go, and containerd, runc, docker-init and iptables
# of Debian's docker.io.
#   engines.sh build               build the engine, once (three minutes)
#   engines.sh run STORE COMMAND…  STORE: classic, or containerd for its image store
set -euo pipefail

version=28.5.2
module=github.com/docker/docker@v$version+incompatible
cache=${XDG_CACHE_HOME:-$HOME/.cache}/abl/engines/$version

say() { printf 'engines: %s\n' "$*" >&2; }

build() {
  if [ -x "$cache/dockerd" ] && [ -x "$cache/docker-proxy" ]; then return; fi
  say "building dockerd $version, about three minutes"
  local src info=github.com/docker/docker/dockerversion
  src=$(go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  mkdir -p "$cache"
  rm -rf "$cache/src"
  cp -r "$src" "$cache/src"
  chmod -R u+w "$cache/src"
  cp "$cache/src/vendor.mod" "$cache/src/go.mod"
  cp "$cache/src/vendor.sum" "$cache/src/go.sum"
  (cd "$cache/src" && CGO_ENABLED=0 GOWORK=off nice go build -mod=mod -trimpath -buildvcs=false \
    -ldflags "-s -w -X $info.Version=$version -X $info.GitCommit=module" -o "$cache/" ./cmd/docker-proxy ./cmd/dockerd)
  rm -rf "$cache/src"
}

# inside runs the command in the namespaces and exits with its exit code.
inside() {
  local store=$1 feature=false socket=/run/docker.sock engine code=0
  shift
  if [ "$store" = containerd ]; then feature=true; fi
  unset DOCKER_HOST DOCKER_CONTEXT
  export ABL_TEST_EGRESS=none # this network has no route to the machine's
  mount -t tmpfs none /run
  ip link set lo up
  ip link add eth0 type veth peer name world # like a host, with an address that no container has
  ip address add 192.0.2.2/24 dev eth0
  ip link set world up
  ip link set eth0 up
  printf '{"features": {"containerd-snapshotter": %s}}\n' $feature >"$cache/$store/daemon.json"
  "$cache/dockerd" --config-file "$cache/$store/daemon.json" --data-root "$cache/$store/root" --exec-root /run/exec \
    --pidfile /run/engine.pid --host unix://$socket --userland-proxy-path "$cache/docker-proxy" >"$cache/$store/log" 2>&1 9>&- &
  engine=$!
  trap 'kill -TERM $engine; wait $engine || true' EXIT
  for _ in $(seq 300); do
    if docker version >/dev/null 2>&1; then break; fi
    kill -0 $engine || { tail -n 20 "$cache/$store/log" >&2; exit 7; }
    sleep 0.2
  done
  docker version --format "engines: {{.Server.Version}}, API {{.Server.APIVersion}}, $store image store" >&2
  docker ps -aq | xargs -r docker rm -f >/dev/null
  if ! xargs docker image inspect <"$cache/$store/images" >/dev/null 2>&1; then docker load --quiet --input "$cache/$store/images.tar" >&2; fi
  "$@" || code=$?
  exit $code
}

# images prints abl's images that cannot be built without a network.
images() {
  local name
  for name in base tools gemini; do docker images --format '{{.Repository}}:{{.Tag}}' "abl/$name"; done
}

run() {
  local store=$1
  case $store in classic | containerd) ;; *) say "unknown image store $store: want classic or containerd"; exit 2 ;; esac
  if [ "$(id -u)" -ne 0 ]; then say "a separate engine needs root"; exit 7; fi
  build
  mkdir -p "$cache/$store"
  exec 9>"$cache/$store/lock"
  flock 9
  images >"$cache/$store/images.new"
  if ! cmp -s "$cache/$store/images.new" "$cache/$store/images"; then
    xargs docker save --output "$cache/$store/images.tar" <"$cache/$store/images.new"
    mv "$cache/$store/images.new" "$cache/$store/images"
  fi
  unshare --net --mount --propagation private bash "$0" inside "$@" 9>&-
}

case ${1:-} in
  build) build ;;
  run) shift; run "$@" ;;
  inside) shift; inside "$@" ;;
  *) sed -n '2,7s/^# //p' "$0" >&2; exit 2 ;;
esac
