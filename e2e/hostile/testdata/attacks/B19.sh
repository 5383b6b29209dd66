# Other processes.
n=$(ls -d /proc/[0-9]* | wc -l); [ "$n" -lt 30 ] && held "$n processes" || hole "$n processes are seen"
empty sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" "\n" | grep -x "dockerd\|containerd\|abl\|phase\|sshd\|abl-holder\|abl-gateway"'
empty sh -c 'cat /proc/[0-9]*/environ | tr "\0" "\n" | grep -i "canary[E]nv\|canary[K]ey"'
