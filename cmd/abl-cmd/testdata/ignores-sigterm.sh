# Ignores SIGTERM.
trap '' TERM
while :; do sleep 0.1; done
