#!/bin/bash
# Builds everything, runs the fast tests of the learner, and checks the command line, with a scripted
# agent if there is a container engine.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
"$here/build-all.sh"
(cd "$here" && go vet ./orchestrator/learner ./cmd/internal/learn ./cmd/agent-learner && go test ./orchestrator/learner ./cmd/internal/learn)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >scenario.yaml <<'END'
version: 1
calls:
  - role: generate
    steps:
      - write: run.sh
        text: "echo hello\n"
  - role: review
    steps: [{say: "SECURITY: OK"}]
  - role: learnings
    steps: [{say: "LEARNING: greet in one line"}]
  - role: mistakes
    steps: [{say: "MISTAKE: no tests"}]
  - role: improve
    steps: [{say: "Write programs, and their tests."}]
END

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
if "$here/bin/abl" doctor >/dev/null 2>&1; then
  check "a session" 0 "$here/run.sh" "say hello" --agent scripted --scenario scenario.yaml --cycles 2
  check "code/ is there" 0 test -f solutions/say-hello/code/run.sh
  check "memory.txt" 0 grep -qx -- "- greet in one line" solutions/say-hello/memory.txt
  check "two versions of the prompt" 0 grep -q "^## Version 2 - " solutions/say-hello/prompts.md
else
  echo "test: a session: left out, as there is no engine (abl doctor)"
fi
check "nothing to stop" 0 "$here/stop.sh"
echo "test: all is well"
