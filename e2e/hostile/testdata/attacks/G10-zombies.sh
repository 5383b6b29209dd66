# Children without a parent that waits: process 1 must wait for them.
for i in $(seq 1 300); do (true &); done
zombies() { grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l; }
i=0
until [ "$(zombies)" -lt 50 ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i + 1)); done
n=$(zombies)
[ "$n" -lt 50 ] && held "$n zombies" || hole "$n zombies"
