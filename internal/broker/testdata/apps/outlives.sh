# An app that runs until it is ended, leaves a process behind, or looks whether one runs.
case $1 in
wait)
  echo > "$HOME/up"
  while :; do sleep 0.05; done
  ;;
daemon)
  (
    cd /
    setsid sleep 1000 </dev/null >/dev/null 2>&1 &
    echo $! > "$HOME/pid"
  )
  cat "$HOME/pid"
  ;;
runs) readlink "/proc/$2/exe" ;;
esac
exit 0
