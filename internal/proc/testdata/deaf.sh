# Three processes that ignore SIGTERM or have left the group; their pids are printed.
trap "" TERM
setsid sleep 1000 &
away=$!
sh -c 'trap "" TERM; sleep 1000; :' &
echo $$ $away $!
while :; do
  wait
  sleep 1
done
