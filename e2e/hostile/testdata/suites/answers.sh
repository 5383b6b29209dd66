#!/bin/sh
# A Verifier's suite with one test: the app responds with ok.
echo 1..1
[ "$(curl -sf "$ABL_APP_URL/")" = ok ] && echo 'ok 1 - P1.C1' || echo 'not ok 1 - P1.C1'
