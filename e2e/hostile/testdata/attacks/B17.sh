# Control groups.
fails 'Read-only|denied|No such|nonexistent' mkdir /sys/fs/cgroup/mine /sys/fs/cgroup/memory/mine
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo 1 > /sys/fs/cgroup/memory/notify_on_release'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo max > /sys/fs/cgroup/pids/pids.max || echo max > /sys/fs/cgroup/pids.max'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo /tmp/x > /sys/fs/cgroup/memory/release_agent'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo 0 > /sys/fs/cgroup/cgroup.procs'
empty find /sys -writable -type f
