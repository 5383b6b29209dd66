#!/bin/sh
# P2.C1 POST /links {"url": U, "code": K} with a new address U and a K that is not taken → 201 {"code": K, "url": U}
. ./lib.sh

url=$(fresh P2.C1)
for code in "own-$$" "own-$$-20-characters"; do
	code=$(printf '%.20s' "$code")
	ask POST /links "{\"url\": \"$url/$code\", \"code\": \"$code\"}"
	want 201 '. == {code: $code, url: $url}' --arg code "$code" --arg url "$url/$code"
	ask GET "/$code"
	want 302
	ask DELETE "/links/$code"
	want 204
done
