# Counts a visit in the service cache, and prints the number.
bash -c "exec 3<>/dev/tcp/cache/6379; printf 'INCR visits\r\n' >&3; head -c 2 <&3"
