# From a mount to its neighbours.
tries cat /proc/self/mountinfo
case $PWD in */src) other=.abl/tests;; *) other=/src;; esac
empty sh -c "awk '{print \$4}' /proc/self/mountinfo | grep -v 'in$\|/std' | grep '$other\$'"
empty sh -c 'awk "{print \$4}" /proc/self/mountinfo | grep "\.env\|docker.sock\|/logs$\|/calls$"'
