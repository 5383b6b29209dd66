# An app that does what its first argument names.
case $1 in
args)
  printf '<%s>' "$@"
  exit 3
  ;;
in)
  cat
  cat deep/in.txt
  echo warned >&2
  echo new > deep/out.txt
  rm gone
  ;;
where)
  test "$PWD" != "$ABL_SRC" && test -z "$(ls)" && echo fresh
  echo x > "$HOME/kept"
  echo y > left
  ;;
home) ls "$HOME" ;;
killed) kill -9 $$ ;;
bytes)
  printf '\377\000\033'
  printf '\377' > raw
  ;;
own) exit 125 ;;
quiet)
  exec >&- 2>&- <&-
  exit 4
  ;;
esac
