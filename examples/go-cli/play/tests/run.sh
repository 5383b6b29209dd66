#!/bin/bash
# Runs every saved test against the program and prints TAP.
ABL_EXCHANGE=$(mktemp -d)
export ABL_EXCHANGE
tally() { timeout 60 abl-cmd app "$@"; }
counted=$'2 b\n1 a'

# is CONTRACT OBSERVED EXIT WANTED EXIT
is() {
  if [ "$2" = "$4" ] && [ "$3" = "$5" ]; then
    echo "ok - $1"
  else
    printf 'not ok - %s\n# got %q, exit code %s\n' "$1" "$2" "$3"
    failed=1
  fi
}

echo 1..5
seen=$(printf 'b\na\nb\n' | tally)
is P1.C1 "$seen" $? "$counted" 0
seen=$(printf 'b\na\n' | tally)
is P1.C2 "$seen" $? $'1 a\n1 b' 0
printf 'b\na\nb\n' >"$ABL_EXCHANGE/lines.txt"
seen=$(tally lines.txt </dev/null)
is P1.C3 "$seen" $? "$counted" 0
seen=$(tally -o counts.txt lines.txt </dev/null)
code=$?
is P1.C4 "$seen $(cat "$ABL_EXCHANGE/counts.txt" 2>&1)" $code " $counted" 0
seen=$(tally none.txt </dev/null 2>/tmp/said)
code=$?
grep -qs none.txt /tmp/said || seen="$seen without the name on standard error"
is P1.C5 "$seen" $code "" 1
exit ${failed:-0}
