# leaves-a-process.sh FILE leaves a process of another session that ignores SIGTERM, with its id in
# FILE, and ends with 3.
setsid sh -c 'trap "" TERM; echo $$ >"$1"; while :; do sleep 1; done' sh "$1" &
until test -s "$1"; do sleep 0.01; done
exit 3
