#!/bin/sh
# Checks that the app responds to each path /1 to /CONTRACTS with its number, with a pause of PAUSE
# before each request. The test replaces the two words.
echo 1..CONTRACTS
for i in $(seq CONTRACTS); do
  sleep PAUSE
  if [ "$(curl -sf --max-time 5 "$ABL_APP_URL/$i")" = "$i" ]; then
    echo "ok $i - P1.C$i"
  else
    echo "not ok $i - P1.C$i"
  fi
done
