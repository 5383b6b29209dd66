# Does nothing to the programs around it.
sleep 1000
