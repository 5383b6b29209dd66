#!/bin/bash
# Ends what agent-learner runs for the solutions/ of the current directory: the
# processes that it noted, each only if it is still the one that was noted, and
# containers, networks and volumes by its projects' labels (agent-learner clean).
# Nothing else is touched.
set -euo pipefail

# started PID: when the process was started, as the kernel counts; "" for none.
started() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  stat=${stat##*)}
  set -- $stat
  echo "${20:-}"
}

stopped=0
for note in solutions/.run/learner-* solutions/.run/*; do # whoever starts the others first
  [ -f "$note" ] || continue
  name=$(basename "$note")
  pid=${name#learner-}
  case $pid in *[!0-9]*) continue ;; esac
  begun=$(head -n 1 "$note" 2>/dev/null || true)
  whom=$pid # agent-learner ends what it started itself
  [ "$name" = "$pid" ] && whom=-$pid # the others lead a group each
  if [ -n "$begun" ] && [ "$(started "$pid")" = "$begun" ]; then
    kill -TERM -- "$whom" 2>/dev/null || true
    for ((i = 0; i < 100; i++)); do
      [ "$(started "$pid")" = "$begun" ] || break
      sleep 0.1
    done
    if [ "$(started "$pid")" = "$begun" ]; then
      kill -KILL -- "$whom" 2>/dev/null || true
    fi
    stopped=$((stopped + 1))
  fi
  rm -f "$note"
done
echo "stop: $stopped processes ended"

program=$(dirname "$(readlink -f "$0")")/bin/agent-learner
if [ ! -x "$program" ] || [ ! -d solutions ]; then
  exit 0
fi
code=0
"$program" clean || code=$?
if [ "$code" = 7 ]; then # programs may run on this machine alone
  echo "stop: no containers were looked for"
  code=0
fi
exit "$code"
