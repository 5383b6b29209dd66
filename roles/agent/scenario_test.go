package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func full(t *testing.T) Scenario {
	t.Helper()
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("full.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := full(t)
	var kinds []string
	for _, step := range s.Calls[0].Steps {
		kinds = append(kinds, step.Kind())
	}
	if got, want := strings.Join(kinds, " "), "say write write append delete run sleep print raw report"; got != want {
		t.Errorf("kinds: got %s, want %s", got, want)
	}
	steps := s.Calls[0].Steps
	if steps[1].Mode != "0755" || steps[6].Sleep != Duration(200*time.Millisecond) || steps[7].Print != 2000 {
		t.Errorf("steps: got mode %s, sleep %v, print %d, want 0755, 200ms, 2000",
			steps[1].Mode, time.Duration(steps[6].Sleep), steps[7].Print)
	}
	if u := s.Calls[0].Usage; *u[0].Thoughts != 20 || u[0].Tool != nil || u[1].Input != nil {
		t.Errorf("counts: got thoughts %d, tool %v, input %v, want 20, nil, nil", *u[0].Thoughts, u[0].Tool, u[1].Input)
	}
	if n := s.Calls[0].Requests(); n != 3 {
		t.Errorf("requests: got %d, want 3", n)
	}
}

func TestParseErrors(t *testing.T) {
	call := "version: 1\ncalls:\n- role: builder\n  "
	step := call + "steps:\n  - "
	tests := []struct{ name, in, want string }{
		{"empty", "", "s.yaml: version: want 1, got 0"},
		{"future", "version: 2\ncalls: [{role: builder}]\n", "s.yaml:1: version: want 1, got 2"},
		{"no calls", "version: 1\n", "s.yaml: calls: the list is empty"},
		{"role", "version: 1\ncalls:\n- role: tester\n", `s.yaml:3: calls[0]: role is "tester", want one of ["builder" "verifier" "generate" "review" "learnings" "mistakes" "improve"]`},
		{"no role", "version: 1\ncalls:\n- phase: 1\n", `s.yaml:3: calls[0]: role is "", want one of ["builder" "verifier" "generate" "review" "learnings" "mistakes" "improve"]`},
		{"unknown key", call + "stpes: []\n", `s.yaml:4: unknown key "stpes" in calls[0]; did you mean "steps"?`},
		{"step number", call + "step: 3\n", `s.yaml:4: unknown key "step" in calls[0]; did you mean "steps"?`},
		{"phase", call + "phase: -1\n", "s.yaml:3: calls[0]: phase, iteration and attempt must be positive numbers; omit one to match any"},
		{"end", call + "end: later\n", `s.yaml:3: calls[0]: end is "later", want one of ["ok" "silent" "error" "away" "login" "crash" "hang"]`},
		{"exit", call + "exit: 256\n", "s.yaml:3: calls[0]: exit is 256, want 0 to 255"},
		{"usage model", call + "usage: [{input: 1}]\n", `s.yaml:3: calls[0]: usage of "": want a model, and no count below 0`},
		{"usage count", call + "usage: [{model: m, input: -1}]\n", `s.yaml:3: calls[0]: usage of "m": want a model, and no count below 0`},
		{"usage requests", call + "usage: [{model: m, requests: -1}]\n", `s.yaml:3: calls[0]: usage of "m": want a model, and no count below 0`},
		{"nothing", step + "expect: 1\n", `s.yaml:5: calls[0].steps[0]: want one of say, write, append, delete, run, sleep, print, raw and report in a step, got ["expect"]`},
		{"two things", step + "run: x\n    say: y\n", `s.yaml:5: calls[0].steps[0]: want one of say, write, append, delete, run, sleep, print, raw and report in a step, got ["run" "say"]`},
		{"absolute", step + "write: /etc/passwd\n", `s.yaml:5: calls[0].steps[0]: write: path "/etc/passwd" leaves the workspace`},
		{"escape", step + "append: a/../../b\n", `s.yaml:5: calls[0].steps[0]: append: path "a/../../b" leaves the workspace`},
		{"workspace itself", step + "delete: a/..\n", `s.yaml:5: calls[0].steps[0]: delete: path "a/.." leaves the workspace`},
		{"from escape", step + "write: a\n    from: ../x\n", `s.yaml:5: calls[0].steps[0]: from: path "../x" leaves the scenario's folder`},
		{"text and from", step + "write: a\n    text: b\n    from: c\n", "s.yaml:5: calls[0].steps[0]: text and from are mutually exclusive"},
		{"text alone", step + "run: a\n    text: b\n", "s.yaml:5: calls[0].steps[0]: text: cannot be combined with run"},
		{"expect", step + "write: a\n    expect: 0\n", "s.yaml:5: calls[0].steps[0]: expect: cannot be combined with write"},
		{"mode with append", step + "append: a\n    mode: '0644'\n", "s.yaml:5: calls[0].steps[0]: mode: cannot be combined with append"},
		{"mode", step + "write: a\n    mode: '4755'\n", `s.yaml:5: calls[0].steps[0]: mode: want permission bits in octal, such as "0755", got "4755"`},
		{"sleep", step + "sleep: 5\n", `s.yaml:5: calls[0].steps[0].sleep: cannot read duration "5": want one such as 200ms or 1m30s, up to 24h`},
		{"long sleep", step + "sleep: 25h\n", `s.yaml:5: calls[0].steps[0].sleep: cannot read duration "25h": want one such as 200ms or 1m30s, up to 24h`},
		{"print", step + "print: much\n", `s.yaml:5: calls[0].steps[0].print: cannot read size "much": want a number of bytes, or one such as 200MB, up to 16GB`},
		{"too much", step + "print: 17GB\n", `s.yaml:5: calls[0].steps[0].print: cannot read size "17GB": want a number of bytes, or one such as 200MB, up to 16GB`},
		{"raw lines", step + `raw: "a\nb"` + "\n", "s.yaml:5: calls[0].steps[0]: raw: want one line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("s.yaml", []byte(tt.in))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestParseCallErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "c.json: not a call of a scenario: unexpected end of JSON input",
		`{"role":"builder"} {}`: "c.json: not a call of a scenario: invalid character '{' after top-level value",
	} {
		if _, err := ParseCall("c.json", []byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestPick(t *testing.T) {
	s := Scenario{Calls: []ScriptCall{
		{Role: "builder", Phase: 1, Iteration: 2, Exit: 1},
		{Role: "builder", Attempt: 2, Exit: 2},
		{Role: "builder", Phase: 1, Exit: 3},
		{Role: "verifier", Exit: 4},
	}}
	tests := []struct {
		role                      string
		phase, iteration, attempt int
		exit                      int
		found                     bool
	}{
		{"builder", 1, 2, 1, 1, true},
		{"builder", 1, 2, 2, 1, true},
		{"builder", 1, 1, 2, 2, true},
		{"builder", 1, 1, 1, 3, true},
		{"builder", 2, 1, 1, 0, false},
		{"verifier", 9, 9, 9, 4, true},
	}
	for _, tt := range tests {
		got, found := s.Pick(tt.role, tt.phase, tt.iteration, tt.attempt)
		if found != tt.found || got.Exit != tt.exit {
			t.Errorf("Pick(%s, %d, %d, %d): got entry %d, %v, want %d, %v",
				tt.role, tt.phase, tt.iteration, tt.attempt, got.Exit, found, tt.exit, tt.found)
		}
		if found && (got.Phase != tt.phase || got.Iteration != tt.iteration || got.Attempt != tt.attempt) {
			t.Errorf("Pick(%s, %d, %d, %d): got %+v, want the same phase, iteration and attempt",
				tt.role, tt.phase, tt.iteration, tt.attempt, got)
		}
	}
}

func TestResolveInlinesFiles(t *testing.T) {
	s := full(t)
	got, err := s.Calls[0].Resolve("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if step := got.Steps[2]; step.Text != "<h1>hello</h1>\n" || step.From != "" {
		t.Errorf("step: got %+v, want the text of the file instead of its name", step)
	}
	if s.Calls[0].Steps[2].From == "" {
		t.Errorf("given call after Resolve: got %+v, want it unchanged", s.Calls[0].Steps[2])
	}
}

func TestResolveRefuses(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(outside, []byte("secret"), 0o600))
	check(os.Symlink(outside, filepath.Join(dir, "link")))
	check(syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	check(os.WriteFile(filepath.Join(dir, "big"), nil, 0o600))
	check(os.WriteFile(filepath.Join(dir, "binary"), []byte{0xff}, 0o600))
	check(os.Truncate(filepath.Join(dir, "big"), maxText+1))
	tests := []struct{ from, want string }{
		{"gone", "does not exist"},
		{"link", "a link"},
		{"fifo", "FIFO"},
		{".", "directory"},
		{"big", "too large"},
		{"binary", "not UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.from, func(t *testing.T) {
			_, err := ScriptCall{Steps: []Step{{Write: "a", From: tt.from}}}.Resolve(dir)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "step 1: cannot ") {
				t.Errorf("from %s: got %v, want %q in it", tt.from, err, tt.want)
			}
		})
	}
}

func TestFill(t *testing.T) {
	v := Values{Phase: 2, Iteration: 3, Step: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600)), AppURL: "http://app:3000"}
	got := v.Fill("{{phase}} {{iteration}} {{step}} {{time}} {{app_url}} {{ phase }} {{name}}")
	if want := "2 3 7 20260102T020405Z http://app:3000 {{ phase }} {{name}}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := ReportPath("verifier", v.Phase, v.Iteration, v.Time); got != "verifier_reports/phase2_v3_20260102T020405Z.md" {
		t.Errorf("report path: got %s, want verifier_reports/phase2_v3_20260102T020405Z.md", got)
	}
}

// roundTrip checks that abl passes on to the agent what it read.
func roundTrip(t *testing.T, s Scenario) {
	t.Helper()
	for _, c := range s.Calls {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCall("c.json", data)
		if err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestRoundTrip(t *testing.T) { roundTrip(t, full(t)) }

// FuzzParse checks that no input causes a panic, and that accepted scenarios stay in the workspace
// and reach the agent unchanged.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	for _, seed := range []string{
		"version: 1\ncalls: [{role: builder, steps: [{write: a/../b, text: x}]}]\n",
		"version: 1\ncalls: &a [{role: verifier, steps: [{report: \"\\u2028\\0\"}], usage: [{model: m, input: 0}]}]\n",
		"version: 1\ncalls: [{role: builder, steps: [{print: 16GB}, {sleep: 24h}, {raw: ''}]}]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse("s.yaml", []byte(in))
		if err != nil {
			return
		}
		for _, c := range s.Calls {
			for _, step := range c.Steps {
				if p := step.Path(); p != "" && (strings.HasPrefix(p, "/") || !filepath.IsLocal(p)) {
					t.Errorf("path of a step: got %q, want a local one", p)
				}
			}
		}
		roundTrip(t, s)
	})
}
