# A line of a gigabyte in the agent's own output, then a wait to be ended.
head -c 1000000000 /dev/zero | tr '\000' x >> /abl/out/stdout
sleep 100
