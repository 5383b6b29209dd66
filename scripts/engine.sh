#!/bin/bash
# Ensures that a Docker engine responds. If none does, it installs docker.io and starts it, as root on
# Debian or Ubuntu. Otherwise it prints what to do and exits with 7. It is safe to run twice, also at
# the same time.
set -euo pipefail

socket=/var/run/docker.sock
daemon_log=/var/log/abl-dockerd.log
lock=/var/lock/abl-engine.lock
patience=60 # seconds until a started engine must respond

say() { printf 'engine: %s\n' "$*" >&2; }

# If the user has set DOCKER_HOST or a context, only that engine counts.
chosen() {
  case ${DOCKER_HOST:-} in
    "" | "unix://$socket" | unix:///run/docker.sock) ;;
    *) return 0 ;;
  esac
  if [ -n "${DOCKER_HOST:-}" ]; then return 1; fi
  case ${DOCKER_CONTEXT:-} in
    "") grep -Eqs '"currentContext"[[:space:]]*:[[:space:]]*"[^"]' "$HOME/.docker/config.json" &&
      ! grep -Eqs '"currentContext"[[:space:]]*:[[:space:]]*"default"' "$HOME/.docker/config.json" ;;
    default) return 1 ;;
    *) return 0 ;;
  esac
}

responds() {
  if chosen; then
    case ${DOCKER_HOST:-} in
      unix://*) ping_socket "${DOCKER_HOST#unix://}" ;;
      *) ping_client ;;
    esac
  else
    ping_socket "$socket"
  fi
}

ping_socket() {
  [ -S "$1" ] || return 1
  if command -v curl >/dev/null 2>&1; then
    [ "$(curl -s -m 5 --unix-socket "$1" http://localhost/_ping 2>/dev/null)" = OK ]
  else
    DOCKER_HOST="unix://$1" ping_client
  fi
}

# A machine may have only the client or only the engine.
ping_client() {
  command -v docker >/dev/null 2>&1 &&
    timeout 10 docker version --format '{{.Server.Version}}' </dev/null >/dev/null 2>&1
}

give_up() {
  say "$1"
  say "do one of these, then run the same command again:"
  say "  on Debian or Ubuntu: sudo $0"
  say "  install Docker (docker.io or Docker's own packages) and start it"
  say "  use an engine on another machine: export DOCKER_HOST=unix:///path or ssh://host"
  exit 7
}

is_debian() {
  [ -r /etc/os-release ] || return 1
  # shellcheck source=/dev/null
  (. /etc/os-release && case " ${ID:-} ${ID_LIKE:-} " in *" debian "* | *" ubuntu "*) exit 0 ;; esac; exit 1)
}

install_engine() {
  local packages=() log
  command -v dockerd >/dev/null 2>&1 || packages+=(docker.io)
  command -v iptables >/dev/null 2>&1 || packages+=(iptables)
  # If the kernel enforces AppArmor, the engine cannot start a container without AppArmor's parser.
  if grep -qs Y /sys/module/apparmor/parameters/enabled && ! command -v apparmor_parser >/dev/null 2>&1; then
    packages+=(apparmor)
  fi
  if [ ${#packages[@]} -eq 0 ]; then return; fi
  say "installing ${packages[*]}"
  log=$(mktemp)
  # The package may start its daemon, which must not inherit this script's lock or output.
  if ! (apt_get update -q && apt_get install -q -y --no-install-recommends "${packages[@]}") >"$log" 2>&1 </dev/null 9>&-; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    give_up "apt-get could not install ${packages[*]}"
  fi
  rm -f "$log"
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"; }

start_engine() {
  if [ -d /run/systemd/system ]; then
    say "starting docker with systemctl"
    systemctl start docker >&2 </dev/null 9>&- || true
  elif [ "$(cat /proc/1/comm)" = init ] && [ -x /etc/init.d/docker ]; then
    say "starting docker with its init script"
    service docker start >"$daemon_log" 2>&1 </dev/null 9>&- || true
  elif pid=$(running_dockerd); then
    say "dockerd is already running (pid $pid); waiting for it"
  else
    rm_stale_pid
    say "starting dockerd in the background; its log is $daemon_log"
    : >"$daemon_log"
    # dockerd re-executes itself for each network and copy, with a quarter of the time in the garbage
    # collector.
    GOGC=400 detached dockerd >>"$daemon_log" 2>&1 </dev/null &
  fi
}

# Runs a program in a separate session, without this script's file descriptors. Otherwise a process
# that waits for the end of this script's output, or for the lock, would wait for the program's end.
detached() {
  local fd
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi
  done
  exec setsid "$@"
}

# Prints the pid of this machine's dockerd, which may still be starting. A dockerd in a container does
# not count.
running_dockerd() {
  local dir
  for dir in /proc/[0-9]*; do
    [ "$(cat "$dir/comm" 2>/dev/null)" = dockerd ] || continue
    [ "$(readlink "$dir/ns/pid")" = "$(readlink /proc/self/ns/pid)" ] || continue
    echo "${dir##*/}"
    return 0
  done
  return 1
}

# A machine that was switched off leaves the pid file of the old dockerd. Another process may have that
# pid now, and then dockerd would not start.
rm_stale_pid() {
  local file
  for file in /var/run/docker.pid /var/run/docker/containerd/containerd.pid; do
    if [ -e "$file" ]; then
      say "removing the leftover $file"
      rm -f "$file"
    fi
  done
}

# A dockerd that was killed while it created a network may leave a network database that makes it panic
# at every later start. The database contains only networks. The function also removes the namespaces
# of these networks, because the engine would assign their addresses again.
move_network_database() {
  local files=/var/lib/docker/network/files
  [ -e "$files/local-kv.db" ] && ! running_dockerd >/dev/null || return 1
  grep -qs '^panic:' "$daemon_log" && grep -qs 'libnetwork' "$daemon_log" || return 1
  say "dockerd panics over its network database; moving it to $files/local-kv.db.broken"
  mv -f "$files/local-kv.db" "$files/local-kv.db.broken"
  local namespace
  for namespace in /var/run/docker/netns/*; do
    umount "$namespace" 2>/dev/null || true
    rm -f "$namespace"
  done
}

wait_for_engine() {
  local end=$((SECONDS + patience))
  until responds; do
    if move_network_database; then start_engine; fi
    if [ "$SECONDS" -ge "$end" ]; then
      tail -n 20 "$daemon_log" >&2 2>/dev/null || true
      give_up "the engine did not respond within $patience s"
    fi
    sleep 0.3
  done
}

HOME=${HOME:-/root}
if responds; then
  exit 0
fi
if chosen && ! command -v docker >/dev/null 2>&1 && [[ ${DOCKER_HOST:-} != unix://* ]]; then
  say "cannot contact the selected engine without the docker command; abl will"
  exit 0
fi
if chosen; then
  give_up "the engine that DOCKER_HOST or the docker context names does not respond"
fi
if [ "$(id -u)" -ne 0 ]; then
  if [ -S "$socket" ] && [ ! -w "$socket" ]; then
    say "permission denied on $socket: run sudo usermod -aG docker $(id -un), then log in again"
  fi
  give_up "no Docker engine responds, and this is not root"
fi
is_debian || give_up "no Docker engine responds, and this is neither Debian nor Ubuntu"

mkdir -p /var/lock /var/log
exec 9>"$lock"
flock 9
if responds; then
  exit 0 # another run of this script has started it
fi
install_engine
responds || start_engine
wait_for_engine
say "an engine responds"
