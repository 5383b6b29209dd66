# Stops its parent.
kill -STOP $PPID
sleep 1000
