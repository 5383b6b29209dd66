# A line of a gigabyte on standard output, then an endless wait.
head -c 1000000000 /dev/zero | tr '\000' x >> /abl/out/stdout
sleep 100
