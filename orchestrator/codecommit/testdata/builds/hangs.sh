#!/bin/sh
# A build that ignores SIGTERM and does not end.
trap '' TERM
sleep 1000 &
echo $! >pid
touch started
wait
wait
