# Ignores signals, and stops its parent and process 1.
trap '' TERM INT HUP
kill -STOP $PPID 1
while :; do sleep 1; done
