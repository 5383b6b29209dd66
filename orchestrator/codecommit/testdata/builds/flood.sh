#!/bin/sh
# More output than is kept.
echo first
head -c 3000000 /dev/zero | tr '\0' x
echo last
