#!/bin/sh
# A build that installs a package, and then connects to hosts that are not allowed. The test
# replaces ADDRESS with the registry's IP address.
set -e
npm install --no-audit --no-fund tiny >/dev/null
node -p 'require("tiny")'
curl -sS https://other.example/listed-nowhere || echo refused
curl -sS https://other.example/listed-nowhere || true
curl -sS --noproxy '*' -k --max-time 5 https://registry.example/direct || true
curl -sS -k --max-time 5 -x '' https://ADDRESS/direct || true
env | grep -c 4711 || true
