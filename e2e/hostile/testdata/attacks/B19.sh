# Other processes.
n=$(ls -d /proc/[0-9]* | wc -l); [ "$n" -lt 30 ] && held "$n processes" || hole "$n processes are seen"
empty sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" "\n" | grep -x "dockerd\|containerd\|abl\|phase\|sshd\|abl-holder\|abl-gateway"'
empty sh -c 'cat /proc/[0-9]*/environ | tr "\0" "\n" | grep -i "canary[E]nv\|canary[K]ey"'
ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/self/status)
[ "$ignored" = 0000000000000000 ] && held 'no signal is ignored' || hole "signals are ignored: $ignored"
