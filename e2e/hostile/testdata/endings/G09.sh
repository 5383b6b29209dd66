# A line of a gigabyte on standard error, then an endless wait.
head -c 1000000000 /dev/zero | tr '\000' x >> /abl/out/stderr
sleep 100
