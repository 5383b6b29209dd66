# The source in the output of a command.
abl-cmd hidden > /tmp/out 2>&1; [ $? = 5 ] && held 'the exit code'
empty cat /tmp/out
