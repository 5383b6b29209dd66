#!/bin/sh
# P2.C4 DELETE /links/C with a known code C → 204
. ./lib.sh

url=$(fresh P2.C4)
ask POST /links "{\"url\": \"$url\"}"
code=$(answer .code)
ask DELETE "/links/$code"
want 204
[ ! -s "$work/body" ] || fail
