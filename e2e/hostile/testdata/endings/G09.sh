# A line of a gigabyte on the error channel, then a wait to be ended.
head -c 1000000000 /dev/zero | tr '\000' x >> /abl/out/stderr
sleep 100
