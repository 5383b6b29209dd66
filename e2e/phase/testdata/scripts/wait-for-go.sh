# Waits up to 60 s until the test has written the file go.
i=0
until test -e go; do
  i=$((i + 1))
  test $i -lt 3000 || exit 1
  sleep 0.02
done
