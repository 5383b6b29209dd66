#!/bin/bash
# The beginning of a suite for apps/names-each-path.mjs: ask PATH, with options for curl before
# it, prints the response. said checks the text of the response, and exact also its status.
ask() { curl -s --max-time 20 "${@:1:$#-1}" "$ABL_APP_URL${!#}"; }
said() { test "$(ask "$1")" = "{\"is\":\"the ${1#/}\"}"; }
exact() { test "$(ask -w '%{http_code}' "$1" | tr -d '\n')" = "{\"is\":\"the ${1#/}\"}200"; }
