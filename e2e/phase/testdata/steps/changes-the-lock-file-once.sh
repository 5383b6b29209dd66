# A preparation that changes the lock file and hangs if the file hang exists. Others succeed.
mkdir -p deps
if test -e hang; then
	rm hang
	echo more >>package-lock.json
	touch deps/changed
	sleep 60
fi
touch deps/all
