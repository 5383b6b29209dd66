# An agent that never ends.
while :; do sleep 1; done
