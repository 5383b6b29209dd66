#!/bin/sh
# The beginning of a suite: check NUMBER CONTRACT PATH TEXT is the test of one contract.
check() {
  got=$(curl -sf --max-time 5 "$ABL_APP_URL$3")
  if [ "$got" = "$4" ]; then
    echo "ok $1 - $2"
  else
    echo "not ok $1 - $2"
    printf '  ---\n  input: GET %s\n  observed: %s\n  ...\n' "$3" "$got"
  fi
}
