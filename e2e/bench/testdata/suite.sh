#!/bin/sh
# Checks P1.C1.
echo 1..1
if curl -sf "$ABL_APP_URL/" | grep -q ok; then
  echo 'ok 1 - P1.C1'
else
  echo 'not ok 1 - P1.C1'
fi
