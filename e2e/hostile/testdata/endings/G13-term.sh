# Everything asked to end, then a wait for it.
kill -TERM -1
sleep 5
