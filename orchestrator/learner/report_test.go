package learner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/roles"

	"github.com/google/go-cmp/cmp"
)

// The output of a session from its beginning to its end.
func TestReportText(t *testing.T) {
	h := Home{Root: filepath.Join(t.TempDir(), "solutions", "add")}
	s, _, err := Open(h, "add", "claude", "sonnet", 2, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var p strings.Builder
	p.WriteString(BeginText(h, s, false))
	p.WriteString(cycleText(s))
	p.WriteString(stepText(s))
	s.Attempt, s.Step = 2, Run
	p.WriteString(stepText(s))
	review := ParseReview("SECURITY: key in source\nTESTS: OK")
	s.Log[0] = Cycle{
		Number: 1, OK: true, Ran: &Ran{OK: true, Running: true, Ports: "3000 4000"}, Review: &review, Learned: []string{"Use a pool", "Log"}, Remembers: 1,
		Dropped: []string{"It works (generic)"}, Silent: []string{"mistakes: 503"}, Improved: "x", Version: 1,
	}
	p.WriteString(reportText(s.Log[0]))
	p.WriteString(reportText(Cycle{Number: 2, Failure: "the program failed: there is no run.sh", Version: 2}))
	if err := os.WriteFile(h.path(MemoryFile), []byte("- Use a pool\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.WriteString(EndText(h, s))
	want := `============================================================
Agent Learner Starting...
Task: add
Agent: claude (use --agent to change)
Model: sonnet (use --model to change)
Learning cycles: 2
Project: solutions/add
============================================================

************************************************************
LEARNING CYCLE 1/2 [Agent: claude | Model: sonnet]
************************************************************
Using agent: claude | model: sonnet
Phase 1: write the program
Phase 2: run it, for at most 10s (attempt 2)

Cycle 1 report
  program   It was still running after 10s and listened on port 3000 and 4000
  review    ARCHITECTURE: no answer
  review    DESIGN: no answer
  review    CODE_QUALITY: no answer
  review    SECURITY: issues: key in source
  review    TESTS: OK
  learned   2, new in memory.txt: 1
            - Use a pool
            - Log
  mistakes  nothing
  dropped   It works (generic)
  silent    mistakes: 503
  prompt    improved; the one of this cycle is version 1 in prompts.md

Cycle 2 report
  failed    the program failed: there is no run.sh
  learned   nothing
  mistakes  nothing
  prompt    unchanged; archived as version 2 in prompts.md

============================================================
Session summary: add
  cycles    1, of which 1 made a program that runs
  program   solutions/add/cycle-1; solutions/add/code is created from it when the session ends
  stopped   in cycle 1 of 2, at run; finished cycles are saved
  learnings 1 in solutions/add/memory.txt
            - Use a pool
  mistakes  0 in solutions/add/mistakes.txt
  prompts   0 earlier versions in solutions/add/prompts.md
============================================================
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("report of the session (-want +got)\n%s", diff)
	}
}

// TestRanOf checks the result of a program by the end of its container.
func TestRanOf(t *testing.T) {
	for _, c := range []struct {
		end  roles.Outcome
		want string
	}{
		{roles.Outcome{Class: outcome.Done}, "It ended with exit code 0."},
		{roles.Outcome{Class: outcome.Running}, "It was still running after 10s and listened on no port."},
		{roles.Outcome{Class: outcome.Running, Ports: "3000"}, "It was still running after 10s and listened on port 3000."},
		{roles.Outcome{Class: outcome.Failed, Exit: 3}, "It failed: it ended with exit code 3."},
		{roles.Outcome{Class: outcome.Flood}, "It failed: it printed more than 8 MiB."},
		{roles.Outcome{Class: outcome.Timeout}, "It failed: it could not be stopped in time."},
		{roles.Outcome{Class: outcome.Crashed, Reason: " killed: out of memory\n"}, "It failed: killed: out of memory."},
	} {
		if got := ranOf(c.end).Summary(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.end.Class, got, c.want)
		}
	}
	if got := (*Ran)(nil).text(); got != "It was not started." {
		t.Errorf("text of no run: got %q, want %q", got, "It was not started.")
	}
}

// The end of a program's output is kept, with errors last, as plain text.
func TestPrinted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"stdout": strings.Repeat("x", maxPrinted) + "the end\xff\n", "stderr": " warning \n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := printed(roles.Record{Dir: dir})
	if err != nil || !strings.HasSuffix(got, "xthe end\nwarning") || len(got) > maxPrinted+len("\nwarning") {
		t.Errorf("printed text: got %d bytes, %v, …%q, want at most %d bytes that end with the warning",
			len(got), err, got[max(len(got)-40, 0):], maxPrinted+len("\nwarning"))
	}
	if err := os.Remove(filepath.Join(dir, "stderr")); err != nil {
		t.Fatal(err)
	}
	if _, err := printed(roles.Record{Dir: dir}); err == nil {
		t.Error("printed text of a record without its output: got no error, want one")
	}
}
