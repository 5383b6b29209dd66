#!/bin/sh
# Runs every saved test against $ABL_APP_URL and prints TAP. A test is a script
# whose second line holds its contract; it prints what it saw when it fails.
case $0 in */*) cd "${0%/*}" || exit 2 ;; esac

quote() {
	printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")"
}

set -- phase*/P*.sh
echo "1..$#"
n=0
bad=0
for test in "$@"; do
	n=$((n + 1))
	title=$(sed -n '2s/^# //p' "$test")
	if seen=$(sh "$test" 2>&1); then
		echo "ok $n - $title"
		continue
	fi
	bad=1
	echo "not ok $n - $title"
	echo '  ---'
	echo "  input: $(quote "$(printf '%s\n' "$seen" | sed -n 's/^input: //p')")"
	echo "  observed: $(quote "$(printf '%s\n' "$seen" | sed -n 's/^observed: //p')")"
	echo '  ...'
done
exit $bad
