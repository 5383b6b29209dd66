#!/bin/bash
# Runs agent-learner with these arguments in the current directory. Builds it first if it is missing or
# older than its source:
#
#   ./run.sh "a web server that tells the time" --agent gemini
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
program=$here/bin/agent-learner
if [ ! -x "$program" ] || [ -n "$(find "$here" -name '*.go' -newer "$program" -not -path "$here/solutions/*" -print -quit)" ]; then
  "$here/build-all.sh" >&2
fi
exec "$program" "$@"
