# Memory that is never released.
i=0
while :; do
  i=$((i + 1))
  dd if=/dev/zero of=/tmp/x$i bs=1M count=400 2>/dev/null
done
