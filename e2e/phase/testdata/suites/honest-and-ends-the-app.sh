#!/bin/sh
# Checks P1.C1 as honest.sh does, and then makes the app end (apps/ends-on-request.mjs).
echo 1..1
if [ "$(curl -sf --max-time 5 "$ABL_APP_URL/")" = ok ]; then
  echo 'ok 1 - P1.C1'
else
  echo 'not ok 1 - P1.C1'
fi
curl -s "$ABL_APP_URL/quit" >/dev/null
for i in $(seq 40); do
  curl -s -m 1 "$ABL_APP_URL/" >/dev/null || break
  sleep 0.02
done
