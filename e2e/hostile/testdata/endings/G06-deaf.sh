# An agent that ignores every signal it can.
trap '' TERM INT HUP
while :; do sleep 1; done
