#!/bin/bash
# Runs a Kubernetes control plane on this machine: the API server, the controller manager and the
# scheduler, built from their Go module, and etcd of Debian. There is no kubelet: a test creates the nodes
# and reports what became of the pods. It needs root on Debian or Ubuntu, and Go.
#
#   scripts/kubernetes.sh build     builds it and kubectl, once (ten minutes)
#   scripts/kubernetes.sh up DIR    starts it with its files in DIR; export KUBECONFIG=DIR/config,
#                                   kubectl is in the directory that build prints
#   scripts/kubernetes.sh down DIR  stops it
set -euo pipefail

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=1.34.2 published=0.34.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/abl/kubernetes/$version
programs=(kube-apiserver kube-controller-manager kube-scheduler kubectl)

say() { printf 'kubernetes: %s\n' "$*" >&2; }

# build compiles the programs. The module refers to its staging modules by relative paths; outside its
# repository it needs the published ones.
build() {
  local src name at=k8s.io/component-base/version
  if [ ! -x "$cache/kubectl" ]; then
    say "building Kubernetes $version, about ten minutes"
    src=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
    mkdir -p "$cache"
    rm -rf "$cache/src"
    cp -r "$src" "$cache/src"
    chmod -R u+w "$cache/src"
    sed -i -e '/^replace (/,/^)/d' -e "s/^\(\tk8s\.io\/[a-z-]*\) v0\.0\.0$/\1 v$published/" "$cache/src/go.mod"
    for name in "${programs[@]}"; do
      (cd "$cache/src" && GOWORK=off CGO_ENABLED=0 nice go build -mod=mod -buildvcs=false \
        -ldflags "-s -w -X $at.gitVersion=v$version -X $at.gitMajor=1 -X $at.gitMinor=34" -o "$cache/" "./cmd/$name")
    done
    rm -rf "$cache/src"
  fi
  printf '%s\n' "$cache"
}

install() {
  if command -v etcd >/dev/null; then return; fi
  say "installs etcd-server"
  apt-get update -qq
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends etcd-server >/dev/null
}

# await TEXT COMMAND...: waits until the command succeeds, at most a minute.
await() {
  local what=$1
  shift
  for _ in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  say "waited a minute for $what; the logs are in $dir"
  exit 7
}

# start NAME COMMAND...: starts a program in the background.
start() {
  local name=$1
  shift
  setsid "$@" </dev/null >"$dir/$name.log" 2>&1 &
  printf '%s\n' $! >"$dir/$name.pid"
}

up() {
  local key=$dir/key.pem
  mkdir -p "$dir"
  install
  build >/dev/null
  export KUBECONFIG=$dir/config
  openssl genrsa -out "$key" 2048 2>/dev/null
  printf 'test,admin,1,system:masters\n' >"$dir/tokens.csv"
  cat >"$KUBECONFIG" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: abl, cluster: {server: "https://127.0.0.1:16443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: test}}]
contexts: [{name: abl, context: {cluster: abl, user: admin}}]
current-context: abl
CONFIG
  start etcd etcd --data-dir "$dir/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:12379 \
    --advertise-client-urls http://127.0.0.1:12379 --listen-peer-urls http://127.0.0.1:12380 \
    --initial-advertise-peer-urls http://127.0.0.1:12380 --initial-cluster default=http://127.0.0.1:12380
  start kube-apiserver "$cache/kube-apiserver" --etcd-servers http://127.0.0.1:12379 --bind-address 127.0.0.1 \
    --secure-port 16443 --allow-privileged --cert-dir "$dir/certificates" --token-auth-file "$dir/tokens.csv" --authorization-mode RBAC \
    --service-account-issuer https://abl.invalid --service-account-key-file "$key" \
    --service-account-signing-key-file "$key" --service-cluster-ip-range 10.0.0.0/24
  await "the API server" "$cache/kubectl" get --raw /readyz
  start kube-controller-manager "$cache/kube-controller-manager" --kubeconfig "$KUBECONFIG" --leader-elect=false \
    --service-account-private-key-file "$key" --use-service-account-credentials --bind-address 127.0.0.1 \
    --node-monitor-grace-period 1h
  start kube-scheduler "$cache/kube-scheduler" --kubeconfig "$KUBECONFIG" --leader-elect=false --bind-address 127.0.0.1
  await "the service account" "$cache/kubectl" get serviceaccount default
}

down() {
  local name
  for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do
    if [ -s "$dir/$name.pid" ]; then kill -KILL "$(cat "$dir/$name.pid")" 2>/dev/null || true; fi
  done
}

[ $# -ge 1 ] || usage
dir=$(realpath -m "${2:-.}")
case $1 in
  build) build ;;
  up | down) [ $# = 2 ] || usage; "$1" ;;
  *) usage ;;
esac
