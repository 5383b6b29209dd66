#!/bin/bash
# Runs every fuzz target of the module:
#
#   scripts/fuzz.sh [TIME]     TIME is the duration per target, by default 2s
#
# FUZZJOBS is the number of parallel targets, by default 2. Each package is built once. The input of a
# failing target stays in the package's testdata/fuzz, and every later test run includes it.
set -euo pipefail

time=${1:-2s}
jobs=${FUZZJOBS:-2}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One target per line: the package's folder and the name.
grep -rHoE --include='*_test.go' --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]+' . |
  sed -E 's|/[^/]+:func | |' | sort -u >"$work/targets"
count=$(wc -l <"$work/targets")
if [ "$count" -eq 0 ]; then
  echo "fuzz: found no target" >&2
  exit 1
fi

# build FOLDER builds the folder's tests for fuzzing.
build() {
  go test -c -vet=off -fuzz=. -o "$work/$(tr / _ <<<"$1").test" "$1" >&2
}

# run FOLDER TARGET runs a target. It repeats a run that only failed because the time was up in the
# middle of an input, which happens with Go's fuzzer.
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
