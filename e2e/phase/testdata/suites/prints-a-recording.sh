#!/bin/sh
# Prints the results of an earlier run.
cat /workspace/tests/out.tap
