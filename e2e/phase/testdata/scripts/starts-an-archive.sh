# Unpacks a tar file from standard input, starts the app that it has, and prints what it responds
# to / and to /files.
mkdir /tmp/app && cd /tmp/app && tar -x
node server.mjs &
curl -s --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:3000/
echo
curl -s http://127.0.0.1:3000/files
kill $!
