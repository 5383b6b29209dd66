# Prints nothing for 9.6 s, of which the processor is busy for 2.4 s.
for i in $(seq 24); do
  timeout .1 sh -c 'while :; do :; done'
  sleep .3
done
