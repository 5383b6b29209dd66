# Process attributes that a program may change.
tries nice -n 5 true; tries taskset -c 0 true; tries ionice -c 3 true; tries chrt -b 0 true; tries prlimit --nofile=64 true; held allowed
