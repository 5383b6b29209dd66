#!/bin/sh
# P2.C2 POST /links {"url": U, "code": K} with a new address U and a K that is taken → 409 {"error": E}
. ./lib.sh

url=$(fresh P2.C2)
ask POST /links "{\"url\": \"$url\"}"
code=$(answer .code)
for taken in "$code" links health; do
	ask POST /links "{\"url\": \"$url/other\", \"code\": \"$taken\"}"
	want 409 '.error | type == "string" and . != ""'
done
ask GET "/links/$code"
want 200 '.url == $url' --arg url "$url"
