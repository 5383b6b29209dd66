#!/bin/bash
# Builds all programs into bin/.
set -euo pipefail
exec make -C "$(dirname "$(readlink -f "$0")")" build
