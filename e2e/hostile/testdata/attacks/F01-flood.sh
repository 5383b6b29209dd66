# More requests and more input than the broker can take.
for i in $(seq 1 100); do
  (abl-cmd seed < /dev/zero >/dev/null 2>&1 & echo $! >> /tmp/pids)
done
sleep 1 # so long the flood lasts
kill $(cat /tmp/pids) 2>/dev/null
[ "$(curl -s -m 20 $ABL_APP_URL/)" = ok ] && held 'the app answers'
i=0
until echo x | abl-cmd seed || [ $i -ge 100 ]; do sleep 0.1; i=$((i + 1)); done
[ $i -lt 100 ] && held 'the broker answers'
