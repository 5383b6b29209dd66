#!/bin/bash
# Checks each contract of count in its own exchange folder. CHECK_OF_STDIN is the check of
# P1.C1.
cd "$(dirname "$0")"
check() { if "$2"; then echo "ok - $1"; else echo "not ok - $1"; fi; }
in=$(mktemp -d)
export ABL_EXCHANGE=$in
stdin() { CHECK_OF_STDIN; }
files() {
  mkdir -p "$in/deep" && echo 'one two' > "$in/deep/in.txt"
  test -z "$(timeout 20 abl-cmd app words deep/in.txt 'out file.txt')" &&
    test "$(cat "$in/out file.txt")" = 2 && test -f "$in/deep/in.txt"
}
usage() { timeout 20 abl-cmd app 2>/dev/null; test $? = 2; }
echo 1..3
check P1.C1 stdin
check P1.C2 files
check P1.C3 usage
