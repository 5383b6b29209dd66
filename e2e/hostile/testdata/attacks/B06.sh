# Settings of the kernel.
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo x > /proc/sys/kernel/core_pattern'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo h > /proc/sysrq-trigger'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo /tmp/x > /sys/kernel/uevent_helper'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo +x > /proc/sys/fs/binfmt_misc/register'
