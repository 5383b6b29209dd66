#!/bin/sh
# P1.C6 GET /C with an unknown code C → 404 {"error": E}
. ./lib.sh

for code in 000000 nobody ABCDEF '%C3%BC' '__proto__'; do
	ask GET "/$code"
	want 404 '.error | type == "string" and . != ""'
done
