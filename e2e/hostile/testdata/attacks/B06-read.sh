# Memory and secrets of the kernel.
empty head -c 16 /proc/kcore
empty head -c 16 /dev/mem
empty head -c 16 /dev/kmsg
empty head -c 16 /proc/keys
empty sh -c "ls /sys/firmware; ls /proc/acpi; cat /proc/sched_debug /proc/timer_list"
fails 'permitted|denied' dmesg
