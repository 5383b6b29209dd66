#!/bin/bash
# The program's output is the test line.
echo 1..3
for i in 1 2 3; do abl-cmd app echo "ok - P1.C$i"; done
