#!/bin/bash
# Runs every fuzz target of the module for a while, some at a time:
#
#   scripts/fuzz.sh [TIME]     TIME is that of each target: 2s unless given
#
# FUZZJOBS is how many run at once, 2 unless set. Each package is built once,
# however many targets it has. A target that fails leaves its input in the
# package's testdata/fuzz, where every later test run tries it again.
set -euo pipefail

time=${1:-2s}
jobs=${FUZZJOBS:-2}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One target a line: its package's folder and its name.
grep -rHoE --include='*_test.go' --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]+' . |
  sed -E 's|/[^/]+:func | |' | sort -u >"$work/targets"
count=$(wc -l <"$work/targets")
if [ "$count" -eq 0 ]; then
  echo "fuzz: no target was found" >&2
  exit 1
fi

# build FOLDER: the folder's tests, prepared for fuzzing.
build() {
  go test -c -vet=off -fuzz=. -o "$work/$(tr / _ <<<"$1").test" "$1" >&2
}

# run FOLDER TARGET: a run that only ended in the middle of an input, as Go's
# fuzzer now and then does when its time is up, is done again.
run() {
  local log="$work/$(tr / _ <<<"$1").$2.log" try
  for try in 1 2; do
    if (cd "$1" && "$work/$(tr / _ <<<"$1").test" -test.run='^$' -test.fuzz="^$2\$" -test.fuzztime="$time" \
      -test.fuzzminimizetime=5x -test.parallel=1 -test.fuzzcachedir="$cache") >"$log" 2>&1; then
      return 0
    fi
    if [ "$try" = 2 ] || grep -q 'Failing input written' "$log" || ! grep -q 'context deadline exceeded' "$log"; then
      break
    fi
  done
  printf 'fuzz: %s of %s fails:\n' "$2" "$1" >&2
  cat "$log" >&2
  return 1
}

export -f build run
export work time
export cache="${GOCACHE:-$(go env GOCACHE)}/fuzz"
begun=$SECONDS
cut -d' ' -f1 "$work/targets" | sort -u | xargs -P "$jobs" -I{} bash -euo pipefail -c 'build "$1"' _ {}
built=$SECONDS
xargs -P "$jobs" -L1 bash -euo pipefail -c 'run "$1" "$2"' _ <"$work/targets" || exit 1
echo "fuzz: $count targets, $time each: nothing found ($((built - begun)) s to build, $((SECONDS - built)) s to run)"
