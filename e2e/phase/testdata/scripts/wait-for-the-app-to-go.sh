# Ends with 0 as soon as the app does not respond.
for i in $(seq 500); do
  curl -s -m 1 "$ABL_APP_URL/" >/dev/null || exit 0
  sleep 0.02
done
exit 1
