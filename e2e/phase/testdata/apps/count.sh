#!/bin/sh
# Counts words of standard input or of a file, and writes the number to a file if one is
# given. It also does what a hostile program may do.
case $1 in
words)
  n=$(cat "${2:--}" | wc -w | tr -d ' ')
  echo "$n" >>"$HOME/past"
  if [ -n "$3" ]; then echo "$n" >"$3"; else echo "$n"; fi
  ;;
echo) shift && echo "$*" ;;
links)
  ln -s /etc/passwd pass
  ln -s /workspace/src/count.sh src
  mkfifo pipe
  mkdir d
  ln -s / d/root
  echo fine >fine
  ;;
huge)
  head -c 9000000 /dev/zero
  head -c 99000000 /dev/zero >big
  echo small >small
  ;;
many) for i in $(seq 1500); do : >"f$i"; done ;;
spin) while :; do :; done ;;
stay) (setsid sh -c 'cd /; while :; do date >> "$HOME/alive"; sleep 0.1; done' >/dev/null 2>&1 &) ;;
escape)
  printf '\033[31mred\007'
  echo 'abl-cmd: lies' >&2
  exit 125
  ;;
gone)
  rmdir "$PWD"
  ln -s /workspace/src "$PWD"
  ;;
cat) cat "$2" ;;
alive) if [ -f "$HOME/alive" ]; then wc -l <"$HOME/alive"; else echo none; fi ;;
*)
  echo 'usage: count words [FILE [INTO]]' >&2
  exit 2
  ;;
esac
