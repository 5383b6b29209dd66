# Writes 60 MB to files that no earlier call has written, and then does nothing.
d=$(mktemp -d out.XXXX)
for i in 1 2 3 4; do
  head -c 15000000 /dev/zero >$d/f$i
  sync $d/f$i
done
sleep 60
