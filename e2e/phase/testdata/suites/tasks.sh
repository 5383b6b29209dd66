#!/bin/bash
# Checks each contract of tasks with its own file. Most checks need a task first, so they share the
# command that adds one, and several look at the list afterwards.
cd "$(dirname "$0")"
ABL_EXCHANGE=$(mktemp -d)
export ABL_EXCHANGE
n=0
check() {
  file=list$((n += 1))
  if "$2"; then echo "ok - $1"; else echo "not ok - $1"; fi
}
tasks() { timeout 20 abl-cmd app "$@"; }
has() { tasks add "$file" 'buy milk' >/dev/null && tasks add "$file" 'call Ann' >/dev/null; }
prints() { got=$("${@:2}") && test "$got" = "$1"; }
ends() {
  "${@:2}" >out.txt 2>&1
  test $? = "$1"
}

bare() { ends 2 tasks; }
version() { prints 'tasks 1.0' tasks --version; }
help() { tasks --help >out.txt && grep -q 'usage: tasks' out.txt; }
unknown() { ends 2 tasks frobnicate; }
add() { prints 'added 1' tasks add "$file" 'buy milk' && prints 'added 2' tasks add "$file" 'call Ann'; }
add_nothing() { ends 2 tasks add "$file" && grep -q 'the text is empty' out.txt; }
list() { has && prints '1 [ ] buy milk,2 [ ] call Ann' eval 'tasks list "$file" | paste -sd ,'; }
list_missing() { ends 1 tasks list nowhere; }
list_json() { has && prints 'buy milk,call Ann' eval 'tasks list "$file" --json | jq -r ".[].text" | paste -sd ,'; }
list_open() { has && tasks done "$file" 1 >/dev/null && prints '2 [ ] call Ann' tasks list "$file" --open; }
complete() { has && prints 'done 1' tasks done "$file" 1 && tasks list "$file" | grep -qF '1 [x] buy milk'; }
complete_99() { has && ends 1 tasks done "$file" 99; }
remove() { has && prints 'removed 1' tasks rm "$file" 1 && test "$(tasks list "$file")" = '2 [ ] call Ann'; }
remove_99() { has && ends 1 tasks rm "$file" 99; }
edit() { has && prints 'changed 2' tasks edit "$file" 2 'call Bob' && tasks list "$file" | grep -qF '2 [ ] call Bob'; }
edit_99() { has && ends 1 tasks edit "$file" 99 'call Bob'; }
find() { has && prints '2 [ ] call Ann' tasks find "$file" Ann; }
count() { has && prints 2 tasks count "$file"; }
count_missing() { ends 1 tasks count nowhere; }
clear() { has && prints '' tasks clear "$file" && ends 0 tasks clear "$file" && prints '' tasks list "$file"; }

echo 1..20
check P1.C1 bare
check P1.C2 version
check P1.C3 help
check P1.C4 unknown
check P1.C5 add
check P1.C6 add_nothing
check P1.C7 list
check P1.C8 list_missing
check P1.C9 list_json
check P1.C10 list_open
check P1.C11 complete
check P1.C12 complete_99
check P1.C13 remove
check P1.C14 remove_99
check P1.C15 edit
check P1.C16 edit_99
check P1.C17 find
check P1.C18 count
check P1.C19 count_missing
check P1.C20 clear
