#!/bin/bash
# Builds everything, runs the fast tests of the learner, and tries the command
# line with stand-ins for the agents' CLIs.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
"$here/build-all.sh"
(cd "$here" && go vet ./orchestrator/learner/... ./cmd/internal/learn ./cmd/agent-learner && go test ./orchestrator/learner/... ./cmd/internal/learn)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
cat >bin/claude <<'END'
#!/bin/sh
case "$(cat)" in
*"LEARNING: <"*) echo "LEARNING: greet in one line" ;;
*"MISTAKE: <"*) echo "MISTAKE: no tests" ;;
*"You improve the instructions"*) echo "Write programs, and their tests." ;;
*"You review a program"*) echo "SECURITY: OK" ;;
*) echo 'echo hello' >run.sh ;;
esac
END
chmod +x bin/claude
export PATH="$work/bin:$PATH"

check() { # check WHAT CODE COMMAND…
  local what=$1 want=$2 code=0
  shift 2
  "$@" >out 2>&1 </dev/null || code=$?
  if [ "$code" != "$want" ]; then
    echo "test: $what: exit code $code, want $want" >&2
    cat out >&2
    exit 1
  fi
  echo "test: $what: ok"
}
check "help" 0 "$here/run.sh" --help
check "version" 0 "$here/run.sh" --version
check "no task" 2 "$here/run.sh"
check "cycles out of range" 2 "$here/run.sh" "x" --cycles 11
check "an unknown agent" 2 "$here/run.sh" "x" --agent nobody
check "a session" 0 "$here/run.sh" "say hello" --runtime host --cycles 2
check "code/ is there" 0 test -f solutions/say-hello/code/run.sh
check "memory.txt" 0 grep -qx -- "- greet in one line" solutions/say-hello/memory.txt
check "two versions of the prompt" 0 grep -q "^## Version 2 - " solutions/say-hello/prompts.md
check "nothing to stop" 0 "$here/stop.sh"
echo "test: all is well"
