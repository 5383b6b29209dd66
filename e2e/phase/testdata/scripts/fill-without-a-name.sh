# Fills 100 MB of the disk with a deleted open file, and then does nothing.
exec 3>x
rm x
head -c 100m /dev/zero >&3
sleep 60
