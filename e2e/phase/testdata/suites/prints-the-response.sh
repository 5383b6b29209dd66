#!/bin/sh
# The app's response is the test line: see apps/responds-with-a-test-line.mjs.
echo 1..1
curl -s --max-time 5 "$ABL_APP_URL/"
