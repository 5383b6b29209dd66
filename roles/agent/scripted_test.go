package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const play = `version: 1
calls:
  - role: builder
    phase: 1
    iteration: 1
    steps:
      - write: server.js
        from: play/server.js
      - run: node --check server.js
`

func scripted(t *testing.T) (Agent, string) {
	t.Helper()
	s, err := Parse("scenario.yaml", []byte(play))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "play"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Scripted(s, dir, Provider{}), filepath.Join(dir, "play", "server.js")
}

func TestScriptedCommand(t *testing.T) {
	s, file := scripted(t)
	if err := os.WriteFile(file, []byte("listen()\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd, err := s.Command(Call{Role: "builder", Phase: 1, Iteration: 1, Attempt: 2, Step: 7, Session: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(cmd.Argv, " "); got != "/abl/bin/abl-agent /abl/in/scenario.json" {
		t.Errorf("command: got %s, want /abl/bin/abl-agent /abl/in/scenario.json", got)
	}
	call, err := ParseCall("scenario.json", cmd.Files["scenario.json"])
	if err != nil {
		t.Fatal(err)
	}
	if call.Attempt != 2 || call.Step != 7 || call.Session != "s-1" || len(call.Steps) != 2 || call.Steps[0].Text != "listen()\n" || call.Steps[0].From != "" {
		t.Errorf("call: got %+v, want attempt 2, step 7, session s-1 and the text of the file", call)
	}
}

func TestScriptedCommandErrors(t *testing.T) {
	s, _ := scripted(t)
	tests := []struct {
		call Call
		want string
	}{
		{Call{Role: "verifier", Phase: 1, Iteration: 1, Attempt: 1}, "the scenario has no entry for this call: the verifier of phase 1, iteration 1, attempt 1"},
		{Call{Role: "builder", Phase: 1, Iteration: 1, Attempt: 1}, `cannot play the builder of phase 1, iteration 1: step 1: cannot read "play/server.js"`},
	}
	for _, tt := range tests {
		if _, err := s.Command(tt.call); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestScriptedReader(t *testing.T) {
	const good = `{"type":"result","status":"success","usage":[{"model":"z","input":5,"total":9},{"model":"a","cached":-1}],"requests":2}`
	tests := []struct {
		name, output string
		exit         int
		want         string
	}{
		{"finished", `{"type":"init","session":"s"}` + "\n" + good, 0, "finished=true requests=2 | a in=- out=- cached=- thoughts=- tool=- total=- | z in=5 out=- cached=- thoughts=- tool=- total=9"},
		{"no usage", `{"type":"result","status":"success"}`, 0, "finished=true requests=-1"},
		{"silent", `{"type":"message","text":"bye"}`, 0, `finished=false requests=-1 "the scripted agent ended without a result record, with exit code 0"`},
		{"error", `{"type":"result","status":"error","error":"step 2: exit code 1"}`, 1, `finished=false requests=-1 "the scripted agent failed: step 2: exit code 1"`},
		{"another status", `{"type":"result","status":"fine","requests":-4}`, 0, `finished=false requests=-1 "the scripted agent reports the status \"fine\""`},
		{"exit code against status", good, 3, `finished=false requests=2 "the scripted agent failed with exit code 3" | a in=- out=- cached=- thoughts=- tool=- total=- | z in=5 out=- cached=- thoughts=- tool=- total=9`},
		{"noise", "xxx\n{\n" + good + "\n{}\n", 0, "finished=true requests=2 | a in=- out=- cached=- thoughts=- tool=- total=- | z in=5 out=- cached=- thoughts=- tool=- total=9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Usages(offline, []byte(tt.output), tt.exit)
			if diff := cmp.Diff(tt.want, show(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestScriptedActions(t *testing.T) {
	tests := map[string]string{
		`{"type":"tool","tool":"write","text":"lib/a.js"}`:                       "write lib/a.js",
		`{"type":"tool","tool":"run","text":"cat /workspace/src/a\u001b[2J\nb"}`: "run cat a [2J b",
		`{"type":"message","text":"I begin."}`:                                   "I begin.",
		`{"type":"output","text":"noise"}`:                                       "",
		`not a record`:                                                           "",
	}
	for line, want := range tests {
		got := ""
		for _, m := range offline.NewReader(Call{}).Line([]byte(line), false) {
			got += m.Line()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
