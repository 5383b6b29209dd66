#!/bin/sh
# P1.C9 GET /links/C after a restart of the service → 200 {"code": C, "url": U, "hits": N} as before the restart
. ./lib.sh

url=$(fresh P1.C9)
ask POST /links "{\"url\": \"$url\"}"
code=$(answer .code)
ask GET "/$code"
ask GET "/$code"
ask GET "/links/$code"
want 200 '.hits == 2'
restart
ask GET "/links/$code"
want 200 '. == {code: $code, url: $url, hits: 2}' --arg code "$code" --arg url "$url"
