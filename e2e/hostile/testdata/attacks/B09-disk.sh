# The host's disks.
empty sh -c 'ls /dev/sd* /dev/vd* /dev/nvme* /dev/dm-* /dev/mapper /dev/loop* /dev/kvm /dev/fuse'
empty find /dev -type b
for d in $(find /dev -type c 2>/dev/null); do case $d in
  /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/tty|/dev/pts/ptmx|/dev/ptmx) held $d;;
  *) [ -r $d ] && hole "$d can be read"; held "$d";;
esac; done
