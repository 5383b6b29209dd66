#!/bin/sh
# Exit code 0 means that the project builds. Put your own commands here:
# compile, check, test.
set -eu
echo "build.sh does not say yet how to build this project" >&2
exit 1
