# A preparation that fails, then changes the lock file, and then succeeds.
test -f fixed-exit-code || exit 3
test -f fixed-lock-file || echo more >>package-lock.json
