#!/bin/sh
# P2.C3 GET /links → 200 {"links": [{"code", "url", "hits"}, …]} with every link, the newest first
. ./lib.sh

url=$(fresh P2.C3)
ask POST /links "{\"url\": \"$url/1\"}"
first=$(answer .code)
ask POST /links "{\"url\": \"$url/2\"}"
second=$(answer .code)
ask GET "/$first"
ask GET /links
want 200 '.links[:2] == [{code: $second, url: ($url + "/2"), hits: 0}, {code: $first, url: ($url + "/1"), hits: 1}]' \
	--arg first "$first" --arg second "$second" --arg url "$url"
