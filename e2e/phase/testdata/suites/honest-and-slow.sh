#!/bin/sh
# Checks P1.C1 as honest.sh does, after 2 s of work, so that a test can end it while it works.
sleep 2
echo 1..1
if [ "$(curl -sf --max-time 5 "$ABL_APP_URL/")" = ok ]; then
  echo 'ok 1 - P1.C1'
else
  echo 'not ok 1 - P1.C1'
  printf '  ---\n  input: GET /\n  observed: another text\n  ...\n'
fi
