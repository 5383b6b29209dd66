#!/bin/sh
# P1.C5 GET /C with a known code C → 302 with header Location: U
. ./lib.sh

url=$(fresh P1.C5)
ask POST /links "{\"url\": \"$url\"}"
code=$(answer .code)
ask GET "/$code"
want 302
[ "$location" = "$url" ] || fail
