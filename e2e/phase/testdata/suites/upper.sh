#!/bin/bash
# Sends a line to the app over TCP and expects it back in upper case.
echo 1..1
got=$(timeout 5 bash -c 'host=${ABL_APP_URL#tcp://}
exec 3<>"/dev/tcp/${host%:*}/${host#*:}" && echo "GET /x HTTP/1.1" >&3 && head -1 <&3')
if [ "$got" = "GET /X HTTP/1.1" ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
