#!/bin/bash
# Starts a second Docker engine as if on another machine: in its own network, mount and host name
# namespaces, where it has only system folders, its own data and one folder of this machine. It listens
# with TLS at 203.0.113.2:2376, and sshd beside it. It needs root and Debian or Ubuntu with docker.io;
# it installs openssh-server. The machine's own engine is not affected, except that images are read from it.
#
#   scripts/remote-engine.sh up DIR                   starts it with its files in DIR; DIR/shared is shared
#   scripts/remote-engine.sh run DIR tcp|ssh COMMAND… runs a command with it; temporary files are in DIR/shared
#   scripts/remote-engine.sh down DIR                 stops it and removes DIR
set -euo pipefail

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
command=$1 dir=$(realpath -m "$2")
shift 2
here=203.0.113.1 there=203.0.113.2 link=abl-remote

say() { printf 'remote-engine: %s\n' "$*" >&2; }

install() {
  if [ -x /usr/sbin/sshd ]; then return; fi
  say "installs openssh-server"
  apt-get update -qq
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openssh-server >/dev/null
}

# certificate NAME EXTENSION: a key and a certificate of the engine's authority in DIR/NAME.
certificate() {
  mkdir -p "$dir/$1"
  openssl req -newkey rsa:2048 -nodes -keyout "$dir/$1/key.pem" -out "$dir/$1/request" -subj "/CN=$1" 2>/dev/null
  openssl x509 -req -in "$dir/$1/request" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
    -extfile <(printf '%s\n' "$2") -out "$dir/$1/cert.pem" 2>/dev/null
  cp "$dir/ca.pem" "$dir/$1/ca.pem"
}

keys() {
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/ca.key" -out "$dir/ca.pem" -subj /CN=ca -days 2 2>/dev/null
  certificate server "subjectAltName = IP:$there"
  certificate client "extendedKeyUsage = clientAuth"
  chmod 644 "$dir/client/key.pem" # tests run abl as other users, too
  ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
  ssh-keygen -q -t ed25519 -N '' -f "$dir/user"
  printf '%s %s\n' "$there" "$(cat "$dir/host.pub")" >"$dir/known_hosts"
  cat >"$dir/sshd_config" <<CONF
ListenAddress $there
HostKey $dir/host
AuthorizedKeysFile $dir/user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
MaxStartups 100
MaxSessions 100
PidFile none
CONF
  mkdir -p "$dir/bin" # abl runs the user's ssh
  printf '#!/bin/sh\nexec /usr/bin/ssh -i %s -o UserKnownHostsFile=%s "$@"\n' "$dir/user" "$dir/known_hosts" >"$dir/bin/ssh"
  chmod 755 "$dir/bin/ssh"
}

# enter makes a root with only system folders and DIR, and starts the programs there.
enter() {
  local root=$dir/root name
  hostname engine
  mkdir -p "$root"
  mount -t tmpfs none "$root"
  for name in bin sbin lib lib32 lib64 libx32; do if [ -L "/$name" ]; then cp -d "/$name" "$root/$name"; fi; done
  for name in usr etc dev proc sys; do mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; done
  mkdir -p "$root/run/sshd" "$root/var/lib" "$root/tmp" "$root/old" "$root$dir"
  ln -s ../run "$root/var/run"
  mount --bind "$dir" "$root$dir"
  cd "$root"
  pivot_root . old
  umount -l /old
  ip link set lo up
  until ip link show eth0 >/dev/null 2>&1; do sleep 0.1; done
  ip address add "$there/30" dev eth0
  ip link set eth0 up
  /usr/sbin/sshd -D -f "$dir/sshd_config" >>"$dir/sshd.log" 2>&1 &
  echo $! >"$dir/sshd.pid"
  exec dockerd --data-root "$dir/data" --exec-root /run/exec --pidfile /run/docker.pid --host unix:///run/docker.sock \
    --host "unix://$dir/engine.sock" --host "tcp://$there:2376" --tlsverify --tlscacert "$dir/server/ca.pem" --tlscert "$dir/server/cert.pem" \
    --tlskey "$dir/server/key.pem"
}

tcp() { export DOCKER_HOST=tcp://$there:2376 DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$dir/client; }

# load copies abl's images that cannot be built without a network.
load() {
  local name
  for name in base tools gemini; do docker images --format '{{.Repository}}:{{.Tag}}' "abl/$name"; done |
    xargs docker save | (tcp; docker load --quiet >&2)
}

up() {
  if [ "$(id -u)" -ne 0 ]; then say "a separate engine needs root"; exit 7; fi
  install
  mkdir -p "$dir/shared"
  chmod 755 "$dir"
  chmod 1777 "$dir/shared"
  keys
  unshare --net --mount --uts --propagation private bash "$0" enter "$dir" </dev/null >"$dir/log" 2>&1 &
  echo $! >"$dir/pid"
  until [ "$(readlink "/proc/$(cat "$dir/pid")/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
  ip link add "$link" type veth peer name eth0 netns "$(cat "$dir/pid")"
  ip address add "$here/30" dev "$link"
  ip link set "$link" up
  for _ in $(seq 300); do
    if (tcp; docker version >/dev/null 2>&1); then load; return; fi
    kill -0 "$(cat "$dir/pid")" || { tail -n 20 "$dir/log" >&2; exit 7; }
    sleep 0.2
  done
  say "waited a minute for the engine; its log is $dir/log"
  exit 7
}

run() {
  local by=${1:-}
  shift || usage
  case $by in
    tcp) tcp ;;
    ssh) export DOCKER_HOST=ssh://root@$there PATH=$dir/bin:$PATH ;;
    *) usage ;;
  esac
  # The engine reaches this machine only at one address, and no registry on its loopback.
  export TMPDIR=$dir/shared ABL_TEST_EGRESS=none ABL_TEST_ENGINE=remote ABL_TEST_SOCKET=$dir/engine.sock ABL_TEST_HOST=$here
  "$@"
}

down() {
  if [ -s "$dir/pid" ]; then
    (tcp; timeout 60 docker ps -aq | timeout 60 xargs -r docker rm -f >/dev/null) || true
    kill -TERM "$(cat "$dir/pid")" 2>/dev/null || true
    timeout 60 tail --pid="$(cat "$dir/pid")" -f /dev/null || kill -KILL "$(cat "$dir/pid")" 2>/dev/null || true
    kill -TERM "$(cat "$dir/sshd.pid")" 2>/dev/null || true
  fi
  ip link delete "$link" 2>/dev/null || true
  rm -rf "$dir"
}

case $command in
  up) up ;;
  run) run "$@" ;;
  enter) enter ;;
  down) down ;;
  *) usage ;;
esac
