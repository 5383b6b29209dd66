# An endless file.
dd if=/dev/zero of=huge bs=1M seek=60 count=3000 >/dev/null 2>&1; n=$(stat -c %s huge); [ $n -lt 70000000 ] && held "$n bytes" || hole "$n bytes"; rm -f huge
(trap '' XFSZ; truncate -s 100G huge2) 2>/dev/null && hole '100G' || held 'no 100G'; rm -f huge2
