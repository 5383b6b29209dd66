#!/bin/sh
# A secret in two pieces, HEAD and TAIL, with other output between them. The second piece
# waits until that output was read.
printf %s HEAD
echo between >&2
until test -e go; do sleep 0.02; done
echo TAIL
