#!/bin/sh
# A build that leaves a process running.
sleep 1000 &
echo $! >pid
exit 0
