#!/bin/sh
# A list of tasks in a file, one on each line: a number, x or -, and a text.
usage='usage: tasks add|list|done|rm|edit|find|count|clear FILE …'
fail() { echo "$2" >&2; exit "$1"; }
has() { grep -q "^$1 " "$file" || fail 1 "no task $1"; }
replace() { sed "$1" "$file" >"$file.new" && mv "$file.new" "$file"; }
shown() { sed 's/^\([0-9]*\) x /\1 [x] /; s/^\([0-9]*\) - /\1 [ ] /'; }

case $1 in
--version) echo 'tasks 1.0' && exit ;;
--help) echo "$usage" && exit ;;
add | list | done | rm | edit | find | count | clear) ;;
*) fail 2 "$usage" ;;
esac
file=$2
[ "$1" = add ] || [ -f "$file" ] || fail 1 "cannot open $file"
case $1 in
add)
  [ -n "$3" ] || fail 2 'the text is empty'
  n=$(($(tail -n 1 "$file" 2>/dev/null | cut -d ' ' -f 1) + 1))
  echo "$n - $3" >>"$file"
  echo "added $n"
  ;;
list)
  case $3 in
  --json) sed 's/^\([0-9]*\) \(.\) \(.*\)/{"id": \1, "done": "\2", "text": "\3"}/; s/"x"/true/; s/"-"/false/' "$file" | paste -sd , | sed 's/.*/[&]/' ;;
  --open) grep ' - ' "$file" | shown ;;
  *) shown <"$file" ;;
  esac
  ;;
done) has "$3" && replace "s/^$3 - /$3 x /" && echo "done $3" ;;
rm) has "$3" && replace "/^$3 /d" && echo "removed $3" ;;
edit) has "$3" && replace "s/^\($3 .\) .*/\1 $4/" && echo "changed $3" ;;
find) grep "$3" "$file" | shown ;;
count) wc -l <"$file" | tr -d ' ' ;;
clear) : >"$file" ;;
esac
