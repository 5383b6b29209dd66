#!/bin/sh
# P1.C8 GET /links/C with an unknown code C → 404 {"error": E}
. ./lib.sh

for code in 000000 nobody '__proto__'; do
	ask GET "/links/$code"
	want 404 '.error | type == "string" and . != ""'
done
