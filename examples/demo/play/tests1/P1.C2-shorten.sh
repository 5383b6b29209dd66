#!/bin/sh
# P1.C2 POST /links {"url": U} with a new http or https address U → 201 {"code": C, "url": U}, C being 6 characters out of a-z and 0-9
. ./lib.sh

https=$(fresh P1.C2)
for url in "$https" "http://example.org/?q=${https#https://}&n=%C3%BC#part"; do
	ask POST /links "{\"url\": \"$url\"}"
	want 201 '.url == $url and (.code | test("^[a-z0-9]{6}$"))' --arg url "$url"
done
