#!/bin/sh
# Checks P1.C1: the test fails if the app does not respond or responds with another text than ok.
echo 1..1
if [ "$(curl -sf --max-time 5 "$ABL_APP_URL/")" = ok ]; then
  echo 'ok 1 - P1.C1'
else
  echo 'not ok 1 - P1.C1'
  printf '  ---\n  input: GET /\n  observed: another text\n  ...\n'
fi
