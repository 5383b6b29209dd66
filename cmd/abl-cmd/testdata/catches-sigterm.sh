# catches-sigterm.sh FILE writes to FILE when it is ready for SIGTERM, at which it ends with 5.
trap 'echo caught; exit 5' TERM
echo $$ >"$1"
while :; do sleep 0.01; done
