#!/bin/bash
# Ends what agent-learner runs for the solutions/ of the current directory: the
# processes that it noted, each only if it is still the one that was noted, and
# containers by its projects' labels. Nothing else is touched.
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
  pid=$(basename "$note")
  pid=${pid#learner-}
  case $pid in *[!0-9]*) continue ;; esac
  if [ -n "$(started "$pid")" ] && [ "$(started "$pid")" = "$(cat "$note")" ]; then
    kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null || true
    for ((i = 0; i < 100; i++)); do
      [ "$(started "$pid")" = "$(cat "$note" 2>/dev/null)" ] || break
      sleep 0.1
    done
    if [ "$(started "$pid")" = "$(cat "$note" 2>/dev/null)" ]; then
      kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null || true
    fi
    stopped=$((stopped + 1))
  fi
  rm -f "$note"
done
echo "stop: $stopped processes ended"

command -v docker >/dev/null || exit 0
for state in solutions/*/.abl/learn.json; do
  [ -f "$state" ] || continue
  id=$(sed -n 's/^  "id": "\(learn-[a-z0-9]*\)",$/\1/p' "$state" | head -1)
  [ -n "$id" ] || continue
  boxes=$(docker ps -aq --filter "label=abl.project=$id" 2>/dev/null) || exit 0
  if [ -n "$boxes" ]; then
    docker rm -f $boxes >/dev/null
    echo "stop: $(wc -w <<<"$boxes") containers of $(dirname "$(dirname "$state")") removed"
  fi
done
