#!/bin/bash
# Runs tests one suite after the other, and prints of each whether it passed, how long it took
# and how many containers the engine made meanwhile:
#
#   scripts/suites.sh PACKAGE… [-- PACKAGE…]
#
# Each package before -- is a suite; those after it are one suite, of the tests that need no
# engine. GOTEST are the words before the packages, "go test -count=1" unless set. The output of
# a suite that fails is shown; the others are run all the same.
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
