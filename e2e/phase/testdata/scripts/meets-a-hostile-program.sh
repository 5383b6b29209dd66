# Makes apps/count.sh do more than its contracts say, and checks what it leaves behind.
ends() { # CODE COMMAND…
  want=$1
  shift
  "$@"
  got=$?
  [ $got = "$want" ] || { echo "exit code $got, want $want: $*"; exit 1; }
}
fresh() { rm -rf /tmp/exchange; }

fresh
ends 0 abl-cmd app links 2>&1
find /tmp/exchange -type f
find /tmp/exchange ! -type f ! -type d

fresh
abl-cmd app huge 2>/tmp/err | wc -c
cat /tmp/err
ls /tmp/exchange

fresh
ends 0 abl-cmd app many 2>/tmp/err
tail -1 /tmp/err
ls /tmp/exchange | wc -l

fresh
ends 124 timeout 2 abl-cmd app spin
(timeout 2 abl-cmd app spin & timeout 2 abl-cmd app spin & wait)
abl-cmd app escape | od -c | head -1
ends 125 abl-cmd app escape

# A daemon of the program writes ten times a second, if it is alive.
ends 0 abl-cmd app stay
before=$(abl-cmd app alive)
for i in $(seq 10); do after=$(abl-cmd app alive); done
[ "$before" = "$after" ] && echo DAEMON-GONE
ends 0 abl-cmd restart
ends 0 abl-cmd app alive

fresh
ends 0 abl-cmd app gone
ends 0 abl-cmd app alive

fresh
mkdir -p /tmp/exchange
ln -s /etc/hosts /tmp/exchange/l
ends 125 abl-cmd app cat l
(export ABL_EXCHANGE="$PWD"; ends 125 abl-cmd app cat run.sh) || exit 1
fresh
ln -s /workspace/tests /tmp/exchange
ends 125 abl-cmd app cat run.sh

fresh
mkdir -p /tmp/exchange
echo SECOND >/tmp/exchange/x
ends 0 abl-cmd app cat x
mkfifo /tmp/open # standard input that never ends
(sleep 50 >/tmp/open 2>/dev/null &)
ends 0 abl-cmd app alive </tmp/open
