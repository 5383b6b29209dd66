#!/bin/bash
# Runs a command and says on stderr how long it took: stage.sh NAME COMMAND…
set -euo pipefail
"${@:2}"
printf '== %s: %d s\n' "$1" "$SECONDS" >&2
