#!/bin/sh
# P1.C3 POST /links {"url": U} with a U that has a code already → 200 {"code": C, "url": U} with the same C
. ./lib.sh

url=$(fresh P1.C3)
ask POST /links "{\"url\": \"$url\"}"
want 201
code=$(answer .code)
ask POST /links "{\"url\": \"$url-other\"}"
want 201 '.code != $code' --arg code "$code"
for again in 1 2; do
	ask POST /links "{\"url\": \"$url\"}"
	want 200 '.code == $code and .url == $url' --arg code "$code" --arg url "$url"
done
