#!/bin/sh
# SECRET twice, where the output is cut: BEFORE bytes from its start and from its end.
head -c BEFORE /dev/zero | tr '\0' x
printf %s SECRET
head -c 500000 /dev/zero | tr '\0' x
printf %s SECRET
head -c BEFORE /dev/zero | tr '\0' y
