#!/bin/sh
# Requests the app and checks nothing, after 2 s of work, so that a test can end it while it works.
sleep 2
curl -s "$ABL_APP_URL/" >/dev/null
echo 1..1
echo 'ok 1 - P1.C1'
