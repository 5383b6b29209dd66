# Takes 100 MB of the disk for a file that has no name, and then does nothing.
exec 3>x
rm x
head -c 100m /dev/zero >&3
sleep 60
