#!/bin/sh
# The test looks only at this file, in which the next line is a comment.
# holds: P1.C1
echo 1..1
grep -q '^# holds: P1.C1' "$0" && echo 'ok 1 - P1.C1'
