#!/bin/sh
# Checks P1.C1 and P2.C1, as honest.sh checks P1.C1.
echo 1..2
check() { # NUMBER CONTRACT PATH
  if [ "$(curl -sf --max-time 5 "$ABL_APP_URL$3")" = ok ]; then
    echo "ok $1 - $2"
  else
    echo "not ok $1 - $2"
    printf '  ---\n  input: GET %s\n  observed: another text\n  ...\n' "$3"
  fi
}
check 1 P1.C1 /
check 2 P2.C1 /again
