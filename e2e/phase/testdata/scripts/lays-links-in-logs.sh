# lays-links-in-logs.sh SECRETS creates logs of two calls, with links to SECRETS and a pipe.
set -e
echo secret >"$1/key"
mkdir -p .abl/logs/calls/p1-build-1.1/app .abl/logs/calls/p1-build-2.1
for name in p1-build-1.1/outcome.json p1-build-1.1/stdout p1-build-2.1/stdout; do
  touch ".abl/logs/calls/$name"
done
ln -s calls/p1-build-1.1/stdout .abl/logs/builder.log
ln -s "$1" .abl/logs/calls/p1-build-3.1
ln -s "$1/key" .abl/logs/calls/p1-build-1.1/app/events
mkfifo .abl/logs/calls/p1-build-1.1/app/pipe
ln -s "$1" .abl/reports
