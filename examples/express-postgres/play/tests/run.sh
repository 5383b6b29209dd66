#!/bin/sh
# Runs every saved test against $ABL_APP_URL and prints TAP.
case $0 in */*) cd "${0%/*}" || exit 2 ;; esac
exec node phase1.mjs
