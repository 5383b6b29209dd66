# Leaves a process with much memory to give back; its pid is printed.
python3 -c 'import time; x = b"x" * (300 << 20); open("up", "w"); time.sleep(1000)' &
echo $!
until test -e up; do sleep 0.05; done
