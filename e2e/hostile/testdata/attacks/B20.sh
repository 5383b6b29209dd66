# Remains of an earlier call in /tmp, HOME, shared memory and processes.
empty ls /tmp/x /dev/shm/x "$HOME/x" "$HOME/.gemini" "$HOME/.gitconfig"
empty sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -o "sleep.300[0]"'
empty sh -c 'tail -qn +2 /proc/sysvipc/*'
