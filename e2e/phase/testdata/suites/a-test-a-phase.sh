#!/bin/sh
# Checks P1.C1 at /1. adds-a-test.sh changes n, so that it checks P2.C1 at /2, too.
n=1
echo 1..$n
for i in $(seq $n); do
  if curl -sf "$ABL_APP_URL/$i" | grep -qx ok; then
    echo "ok $i - P$i.C1"
  else
    echo "not ok $i - P$i.C1"
  fi
done
