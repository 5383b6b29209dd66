# All processes asked to terminate, then a wait for it.
kill -TERM -1
sleep 5
