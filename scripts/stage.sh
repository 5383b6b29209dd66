#!/bin/bash
# Runs a command and prints its duration to stderr: stage.sh NAME COMMAND…
set -euo pipefail
"${@:2}"
printf '== %s: %d s\n' "$1" "$SECONDS" >&2
