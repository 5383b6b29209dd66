#!/bin/bash
# Checks only that the program could be run: abl-cmd exits with 125 if it could not.
echo 1..3
for i in 1 2 3; do
  abl-cmd app words </dev/null >/dev/null 2>&1
  if [ $? != 125 ]; then echo "ok - P1.C$i"; else echo "not ok - P1.C$i"; fi
done
