#!/bin/sh
# P1.C1 GET /health → 200 {"status": "ok"}
. ./lib.sh

ask GET /health
want 200 '. == {status: "ok"}'
