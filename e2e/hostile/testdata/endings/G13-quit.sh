# The program that runs the agent, ended by a signal of its language.
kill -QUIT $(grep -lE '^/abl/bin/abl-run' /proc/[0-9]*/cmdline | cut -d/ -f3)
