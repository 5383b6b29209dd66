#!/bin/bash
# Makes sure that a Docker engine answers: uses the one that does; as root on
# Debian or Ubuntu installs docker.io and starts it; else says what to do and
# exits 7. Safe to run twice, and twice at once.
set -euo pipefail

socket=/var/run/docker.sock
daemon_log=/var/log/abl-dockerd.log
lock=/var/lock/abl-engine.lock
patience=60 # seconds a started engine has to answer

say() { printf 'engine: %s\n' "$*" >&2; }

# Whoever set DOCKER_HOST or a context means that engine and no other.
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

answers() {
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

# A machine may have the engine's client without an engine, and the other way round.
ping_client() {
  command -v docker >/dev/null 2>&1 &&
    timeout 10 docker version --format '{{.Server.Version}}' </dev/null >/dev/null 2>&1
}

give_up() {
  say "$1"
  say "do one of these, then run the same command again:"
  say "  on Debian or Ubuntu: sudo $0"
  say "  install Docker (docker.io or Docker's own packages) and start it"
  say "  name an engine elsewhere: export DOCKER_HOST=unix:///path or ssh://host"
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
  # A kernel that enforces AppArmor starts no container without its parser.
  if grep -qs Y /sys/module/apparmor/parameters/enabled && ! command -v apparmor_parser >/dev/null 2>&1; then
    packages+=(apparmor)
  fi
  if [ ${#packages[@]} -eq 0 ]; then return; fi
  say "installing ${packages[*]}"
  log=$(mktemp)
  # The package may start its daemon: that one must hold neither our lock nor our output.
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
    say "starting docker by systemctl"
    systemctl start docker >&2 </dev/null 9>&- || true
  elif [ "$(cat /proc/1/comm)" = init ] && [ -x /etc/init.d/docker ]; then
    say "starting docker by its init script"
    service docker start >"$daemon_log" 2>&1 </dev/null 9>&- || true
  elif pid=$(running_dockerd); then
    say "a dockerd is there already (pid $pid); waiting for it"
  else
    rm_stale_pid
    say "starting dockerd in the background, its log in $daemon_log"
    : >"$daemon_log"
    # It runs itself anew for each network and copy; a quarter of that was collecting garbage.
    GOGC=400 detached dockerd >>"$daemon_log" 2>&1 </dev/null &
  fi
}

# Runs a program in a session of its own and without a descriptor of ours:
# whoever waits for the end of this script's output, or for the lock, would
# otherwise wait for the program's end.
detached() {
  local fd
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi
  done
  exec setsid "$@"
}

# The pid of a dockerd of this machine, be it still starting; one in a
# container of its own is none of ours.
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

# A machine that was switched off leaves the pid file of a dockerd that is
# gone; its number may be somebody else's by now, and dockerd would not start.
rm_stale_pid() {
  local file
  for file in /var/run/docker.pid /var/run/docker/containerd/containerd.pid; do
    if [ -e "$file" ]; then
      say "removing the leftover $file"
      rm -f "$file"
    fi
  done
}

# A dockerd that was killed while it made a network may leave a network database
# that it panics over at every later start; nothing but networks is in it. With it goes what
# the engine would then not know of: namespaces whose addresses it would give out again.
set_networks_aside() {
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
  until answers; do
    if set_networks_aside; then start_engine; fi
    if [ "$SECONDS" -ge "$end" ]; then
      tail -n 20 "$daemon_log" >&2 2>/dev/null || true
      give_up "the engine did not answer within $patience s"
    fi
    sleep 0.3
  done
}

HOME=${HOME:-/root}
if answers; then
  exit 0
fi
if chosen && ! command -v docker >/dev/null 2>&1 && [[ ${DOCKER_HOST:-} != unix://* ]]; then
  say "cannot ask the engine you named without the docker program; abl will"
  exit 0
fi
if chosen; then
  give_up "the engine that DOCKER_HOST or the docker context names does not answer"
fi
if [ "$(id -u)" -ne 0 ]; then
  if [ -S "$socket" ] && [ ! -w "$socket" ]; then
    say "you may not open $socket: sudo usermod -aG docker $(id -un), then log in again"
  fi
  give_up "no Docker engine answers, and this is not root"
fi
is_debian || give_up "no Docker engine answers, and this is neither Debian nor Ubuntu"

mkdir -p /var/lock /var/log
exec 9>"$lock"
flock 9
if answers; then
  exit 0 # whoever held the lock has started it
fi
install_engine
answers || start_engine
wait_for_engine
say "an engine answers"
