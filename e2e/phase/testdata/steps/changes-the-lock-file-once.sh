# A preparation that changes the lock file and hangs. The next ones succeed.
if ! test -e deps/all; then
	mkdir -p deps
	touch deps/all
	echo more >>package-lock.json
	touch deps/changed
	sleep 60
fi
