#!/bin/bash
# Runs a small Slurm cluster on this machine: a controller and two nodes, node1 and node2, in network
# namespaces abl-node1 and abl-node2. It needs root on Debian or Ubuntu, and installs slurmctld, slurmd,
# slurm-client and munge. The nodes share the host name: abl takes an engine for local only if it has the
# host name of the machine.
#
#   scripts/slurm.sh up DIR     starts it with its files in DIR; export SLURM_CONF=DIR/slurm.conf
#   scripts/slurm.sh lose DIR NODE   kills the node's daemon and all that runs there
#   scripts/slurm.sh kill DIR NODE   kills the node's daemon; its jobs continue
#   scripts/slurm.sh start DIR NODE  starts the node's daemon again
#   scripts/slurm.sh down DIR   stops it
#
# ABL_SLURM_LICENSES is the number of licences abl (20). Each node has ABL_SLURM_CPUS CPUs (8).
set -euo pipefail

usage() { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
command=$1 dir=$(realpath -m "$2") node=${3:-}
network=198.51.100 # the controller is at .1, node1 at .11, node2 at .12
export SLURM_CONF=$dir/slurm.conf

say() { printf 'slurm: %s\n' "$*" >&2; }

install() {
  local missing=()
  for pair in slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
  done
  [ ${#missing[@]} = 0 ] && return
  say "installs ${missing[*]}"
  apt-get update -qq
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

configure() {
  mkdir -p "$dir/state"
  chmod 755 "$dir"
  [ -e "$dir/munge.key" ] || (umask 077; head -c 1024 /dev/urandom >"$dir/munge.key")
  local host memory cpus=${ABL_SLURM_CPUS:-8}
  host=$(hostname -s)
  memory=$(($(awk '/MemTotal/ {print $2}' /proc/meminfo) / 1024 / 2))
  cat >"$SLURM_CONF" <<CONF
ClusterName=abl
SlurmctldHost=$host($network.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
TreeWidth=65533
KillWait=10
MailProg=/bin/true
Licenses=abl:${ABL_SLURM_LICENSES:-20}
NodeName=node1 NodeHostname=$host NodeAddr=$network.11 Port=16818 CPUs=$cpus RealMemory=$memory
NodeName=node2 NodeHostname=$host NodeAddr=$network.12 Port=16818 CPUs=$cpus RealMemory=$memory
PartitionName=main Nodes=node1,node2 Default=YES LLN=YES MaxTime=INFINITE State=UP
CONF
}

# connect makes the namespaces, and a bridge between them and this machine.
connect() {
  local number name
  ip link add abl-slurm type bridge
  ip address add "$network.1/24" dev abl-slurm
  ip link set abl-slurm up
  for number in 1 2; do
    name=abl-node$number
    ip netns add "$name"
    ip link add "$name" type veth peer name eth0 netns "$name"
    ip link set "$name" master abl-slurm up
    ip -n "$name" address add "$network.1$number/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
  done
}

disconnect() {
  local name
  for name in abl-node1 abl-node2; do
    ip link delete "$name"
    ip netns delete "$name"
  done
  ip link delete abl-slurm
}

# start_node starts a node's daemon and notes its pid. The daemon's own pid file is empty for a moment.
start_node() {
  mkdir -p "$dir/spool-$1"
  setsid nsenter --net="/run/netns/abl-$1" slurmd -D -N "$1" </dev/null >>"$dir/slurmd-$1.out" 2>&1 &
  echo $! >"$dir/$1.pid"
}

# await TEXT COMMAND...: waits until the command succeeds, at most 30 seconds.
await() {
  local what=$1
  shift
  for _ in $(seq 150); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  say "waited 30 seconds for $what; the logs are in $dir"
  exit 7
}

# ready NODE: the node has registered, with or without jobs. A star marks a node that does not respond.
ready() {
  case $(sinfo --noheader --format=%T --nodes="$1" 2>/dev/null) in idle | mixed | allocated) ;; *) return 1 ;; esac
}

# lose kills the daemon of a node and all that its jobs started, as a power cut does.
lose() {
  local all pid parent
  all=("$(cat "$dir/$1.pid")")
  for pid in $(pgrep . || true); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SLURMD_NODENAME=$1"; then
      all+=("$pid")
      parent=$(ps -o ppid= -p "$pid" | tr -d ' ')
      case $(cat "/proc/$parent/comm" 2>/dev/null) in slurmstepd*) all+=("$parent") ;; esac
    fi
  done 2>/dev/null
  kill -KILL "${all[@]}" 2>/dev/null || true
}

case $command in
  up)
    install
    configure
    connect
    munged --force --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munged.pid" \
      --seed-file="$dir/munged.seed" --log-file="$dir/munged.log"
    slurmctld
    for name in node1 node2; do start_node "$name"; done
    for name in node1 node2; do await "$name" ready "$name"; done
    ;;
  start) [ -n "$node" ] || usage; start_node "$node"; await "$node" ready "$node" ;;
  kill) [ -n "$node" ] || usage; kill -KILL "$(cat "$dir/$node.pid")" ;;
  lose) [ -n "$node" ] || usage; lose "$node" ;;
  down)
    scancel --user=root 2>/dev/null || true
    for name in node1 node2; do if [ -s "$dir/$name.pid" ]; then lose "$name"; fi; done
    for file in slurmctld munged; do
      if [ -s "$dir/$file.pid" ]; then kill "$(cat "$dir/$file.pid")" 2>/dev/null || true; fi
    done
    disconnect 2>/dev/null || true
    ;;
  *) usage ;;
esac
