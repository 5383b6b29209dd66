# Stops itself and a child process of another session.
setsid sh -c 'kill -STOP $$' &
kill -STOP $$
wait
