#!/bin/bash
# Ends what agent-learner runs for the solutions/ of the current directory: each
# agent-learner that holds a project's lock, and then containers, networks and
# volumes by its projects' labels (agent-learner clean). Nothing else is touched.
set -euo pipefail

# holder LOCK: the process that holds it, "" for none. Whom the file names counts
# only while it is held; macOS has no flock, but lsof.
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
  echo "stop: no containers were looked for"
  code=0
fi
exit "$code"
