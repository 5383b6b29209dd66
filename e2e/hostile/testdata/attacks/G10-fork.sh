# A program that starts itself twice.
timeout -s KILL 3 sh -c 'b() { b | b & b; }; b' >/dev/null 2>&1
n=0
for p in /proc/[0-9]*; do n=$((n + 1)); done
[ $n -lt 200 ] && held "$n processes" || hole "$n"
left=1
while [ -n "$left" ]; do
  left=
  for p in /proc/[0-9]*; do
    p=${p#/proc/}
    [ $p -gt $$ ] && left=1 && kill -9 $p 2>/dev/null
  done
done
held cleared
