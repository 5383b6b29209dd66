#!/bin/sh
# P1.C4 POST /links with a body that is no JSON object, or with a url that is no http or https address → 400 {"error": E}
. ./lib.sh

for body in '' '{' 'null' '[]' '"https://example.com"' '{}' '{"url": null}' '{"url": 7}' '{"url": ""}' \
	'{"url": "example.com"}' '{"url": "ftp://example.com/"}' '{"url": "javascript:alert(1)"}'; do
	ask POST /links "$body"
	want 400 '.error | type == "string" and . != ""'
done
ask GET /health
want 200
