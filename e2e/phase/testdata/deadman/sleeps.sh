# Does nothing to the processes around it.
sleep 1000
