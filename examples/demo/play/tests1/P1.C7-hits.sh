#!/bin/sh
# P1.C7 GET /links/C with a known code C → 200 {"code": C, "url": U, "hits": N}, N being the number of times that GET /C was asked for
. ./lib.sh

url=$(fresh P1.C7)
ask POST /links "{\"url\": \"$url\"}"
code=$(answer .code)
for hits in 0 1 2 3; do
	ask GET "/links/$code"
	want 200 '. == {code: $code, url: $url, hits: $hits}' --arg code "$code" --arg url "$url" --argjson hits "$hits"
	ask GET "/$code"
	want 302
done
for visitor in 1 2 3 4 5; do
	curl -s --max-time 10 -o /dev/null "$ABL_APP_URL/$code" &
done
wait
sent="$sent, then 5 times GET /$code at once"
ask GET "/links/$code"
want 200 '.hits == 9'
