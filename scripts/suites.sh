#!/bin/bash
# Runs test suites one after the other, and prints for each whether it passed, its duration, and the
# number of containers that the engine created in the meantime:
#
#   scripts/suites.sh PACKAGE… [-- PACKAGE…]
#
# Each package before -- is a suite. The packages after it form one suite, which needs no engine.
# GOTEST is the command before the packages, by default "go test -count=1". If a suite fails, its
# output is printed, and the other suites still run.
set -euo pipefail

read -ra gotest <<<"${GOTEST:-go test -count=1}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# suite NAME PACKAGE…
suite() {
  local name=$1 begun=$SECONDS says=ok counter
  shift
  docker events --filter type=container --filter event=create --format '{{.ID}}' >"$work/created" 2>"$work/events" &
  counter=$!
  if ! "${gotest[@]}" "$@" >"$work/out" 2>&1; then
    says=FAILED failed=1
    cat "$work/out" >&2
  fi
  kill "$counter" 2>/dev/null || true
  wait "$counter" 2>/dev/null || true
  printf '%-32s %5d s %6d containers  %s\n' "$name" $((SECONDS - begun)) "$(wc -l <"$work/created")" "$says"
}

while [ $# -gt 0 ] && [ "$1" != -- ]; do
  suite "${1#./}" "$1"
  shift
done
if [ $# -gt 1 ]; then
  shift
  TMPDIR=${ABL_TEST_MEMORY:-/tmp} suite "without an engine" "$@"
fi
printf '%-32s %5d s\n' "in all" "$SECONDS"
exit "$failed"
