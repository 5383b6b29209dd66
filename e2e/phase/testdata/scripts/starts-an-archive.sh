# Unpacks a tar file from standard input, starts its app, and prints the responses to / and /files.
mkdir /tmp/app && cd /tmp/app && tar -x
node server.mjs &
curl -s --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:3000/
echo
curl -s http://127.0.0.1:3000/files
kill $!
