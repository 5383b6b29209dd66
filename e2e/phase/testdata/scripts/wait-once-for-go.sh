# Waits up to 60 s until the test has written the file go, and removes it. It does not wait if
# server.mjs exists.
test -e server.mjs && exit
i=0
until test -e go; do
  i=$((i + 1))
  test $i -lt 3000 || exit 1
  sleep 0.02
done
rm go
