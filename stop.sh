#!/bin/bash
# Stops agent-learner for the solutions/ of the current directory: each process that holds a project's
# lock, and then containers, networks and volumes by the projects' labels (agent-learner clean).
set -euo pipefail

# holder LOCK prints the process that holds the lock, or nothing. The pid in the file is valid only
# while the lock is held. macOS has lsof instead of flock.
holder() {
  if command -v flock >/dev/null; then
    flock -n "$1" true || sed -n 's/.*"pid": *\([0-9][0-9]*\).*/\1/p' "$1"
  else
    lsof -t "$1" 2>/dev/null || true
  fi
}

stopped=0
for lock in solutions/*/.abl/lock; do
  [ -f "$lock" ] || continue
  pid=$(holder "$lock")
  [ -n "$pid" ] || continue
  kill -TERM "$pid" 2>/dev/null || true
  for ((i = 0; i < 100; i++)); do
    [ "$(holder "$lock")" = "$pid" ] || break
    sleep 0.1
  done
  if [ "$(holder "$lock")" = "$pid" ]; then
    kill -KILL "$pid" 2>/dev/null || true
  fi
  stopped=$((stopped + 1))
done
echo "stop: processes ended: $stopped"

program=$(dirname "$(readlink -f "$0")")/bin/agent-learner
if [ ! -x "$program" ] || [ ! -d solutions ]; then
  exit 0
fi
code=0
"$program" clean || code=$?
if [ "$code" = 7 ]; then # no engine, no containers
  echo "stop: no engine, so no containers were removed"
  code=0
fi
exit "$code"
