# The same by programs.
fails 'permitted|denied|must be superuser' mount -t tmpfs x /mnt
fails 'permitted|denied' unshare -Ur id
fails 'permitted|denied' nsenter -t 1 -a id
fails 'permitted|denied' chroot /proc/1/root id
fails 'permitted|denied|No such' losetup -f
