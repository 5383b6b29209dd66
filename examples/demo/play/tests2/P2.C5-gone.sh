#!/bin/sh
# P2.C5 GET /C after DELETE /links/C → 404 {"error": E}
. ./lib.sh

url=$(fresh P2.C5)
ask POST /links "{\"url\": \"$url\"}"
code=$(answer .code)
ask DELETE "/links/$code"
ask GET "/$code"
want 404 '.error | type == "string" and . != ""'
restart
ask GET "/$code"
want 404 '.error | type == "string" and . != ""'
