# Ignores SIGTERM, as does its child process, until SIGKILL ends both.
trap '' TERM
(trap '' TERM; sleep 1000) &
sleep 1000
