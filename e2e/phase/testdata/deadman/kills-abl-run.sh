# Kills its parent from another session.
setsid sh -c "kill -KILL $PPID; sleep 1000" &
sleep 1000
