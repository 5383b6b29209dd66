# Shared by the tests: sends requests, remembers them, compares the answers.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sent=

# fresh NAME prints an address that no test has used before.
fresh() {
	printf 'https://example.com/%s/%s-%s' "$1" "$(date +%s)" "$$"
}

# ask METHOD PATH [BODY] sends a request and keeps status, body and location.
ask() {
	sent="${sent:+$sent, then }$1 $2${3:+ body $3}"
	: >"$work/body"
	: >"$work/head"
	if [ $# -gt 2 ]; then
		status=$(curl -sS --max-time 10 -X "$1" -D "$work/head" -o "$work/body" -w '%{http_code}' \
			-H 'Content-Type: application/json' --data-binary "$3" "$ABL_APP_URL$2" 2>/dev/null) || status=none
	else
		status=$(curl -sS --max-time 10 -X "$1" -D "$work/head" -o "$work/body" -w '%{http_code}' \
			"$ABL_APP_URL$2" 2>/dev/null) || status=none
	fi
	location=$(tr -d '\r' <"$work/head" | sed -n 's/^[Ll]ocation: //p')
}

# answer takes one value out of the last answer.
answer() {
	jq -r "$1" "$work/body" 2>/dev/null
}

# want STATUS [FILTER [jq arguments]] fails the test unless the last answer has
# this status and the filter is true of its body.
want() {
	[ "$status" = "$1" ] || fail
	[ $# -gt 1 ] || return 0
	filter=$2
	shift 2
	jq -e "$@" "$filter" "$work/body" >"$work/out" 2>&1 || fail
}

# restart restarts the system and fails the test if it does not come back.
restart() {
	sent="$sent, then a restart"
	abl-cmd restart >"$work/out" 2>&1 || fail 'the system did not come back'
}

# fail ends the test with what was sent and what was seen.
fail() {
	seen=${1-}
	if [ -z "$seen" ] && [ "$status" = none ]; then
		seen='no answer within 10 seconds'
	elif [ -z "$seen" ]; then
		seen="$status $(head -c 300 "$work/body" | tr "\n\r\t" "   " | sed "s/ *$//")${location:+ Location: $location}"
	fi
	printf 'input: %s\nobserved: %s\n' "$sent" "$seen"
	exit 1
}
