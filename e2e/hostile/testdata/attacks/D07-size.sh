# Bodies and headers that are too large or never end.
head -c 22000000 /dev/zero | tr '\000' x > /tmp/large
refused body -X POST --data-binary @/tmp/large "$base$m:generateContent"
refused chunks -X POST -H 'Transfer-Encoding: chunked' --data-binary @/tmp/large "$base$m:generateContent"
refused header -X POST -H "x-a: $(head -c 100000 /dev/zero | tr '\000' y)" -d "$body" "$base$m:generateContent"
for i in $(seq 1 3000); do echo "-H"; echo "x-$i: y"; done > /tmp/many; xargs -a /tmp/many curl -s -m 10 -o /dev/null -w '%{http_code}' -X POST -d "$body" "$base$m:generateContent" | grep -q '^[40]' && held many || hole many
rm /tmp/large
