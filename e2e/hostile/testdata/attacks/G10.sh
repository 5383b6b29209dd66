# Processes.
n=$($A threads 400 | grep -o '[0-9]*'); [ "$n" -lt 100 ] && held "$n processes" || hole "$n processes"
