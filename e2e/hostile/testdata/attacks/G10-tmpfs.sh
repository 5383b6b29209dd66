# Memory through files in tmpfs.
dd if=/dev/zero of=/tmp/x bs=1M count=1000 >/dev/null 2>&1; n=$(stat -c %s /tmp/x 2>/dev/null || echo 0); [ $n -lt 600000000 ] && held "$n bytes in /tmp" || hole "$n"; rm -f /tmp/x
dd if=/dev/zero of=/dev/shm/x bs=1M count=500 >/dev/null 2>&1; n=$(stat -c %s /dev/shm/x 2>/dev/null || echo 0); [ $n -lt 20000000 ] && held "$n bytes in /dev/shm" || hole "$n"; rm -f /dev/shm/x
