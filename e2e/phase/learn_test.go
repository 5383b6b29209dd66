package phase

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"abl/internal/testing/lab"
	"abl/orchestrator/learner"
)

// learnProject returns an empty project with a learner's scenario.
func learnProject(t *testing.T, scenario string) *lab.Project {
	t.Helper()
	turn(t)
	p := lab.From(t, fstest.MapFS{
		".abl/config.yaml": {Data: []byte("version: 1\nlimits: {memory: 1g}\n")},
		"scenario.yaml":    {Data: []byte(scenario)},
	})
	if err := os.Chmod(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// learned is the output of `abl learn --json`.
type learned struct {
	Project string
	Done    bool
	Best    int
	Cycles  []learner.Cycle
}

func learn(p *lab.Project, code int, args ...string) learned {
	p.Helper()
	r := p.Must(code, append([]string{"learn", "--json"}, args...)...)
	var l learned
	if err := json.Unmarshal([]byte(r.Stdout), &l); err != nil {
		p.Fatalf("output of abl learn: got error %v, want valid JSON: %s", err, r.Stdout)
	}
	var state learner.State
	if err := json.Unmarshal([]byte(p.Read(l.Project+"/.abl/learn.json")), &state); err != nil {
		p.Fatal(err)
	}
	for _, kind := range []string{"ps -aq", "volume ls -q", "network ls -q"} {
		if left := docker(p, append(strings.Fields(kind), "--filter", "label=abl.project="+state.ID)...); left != "" {
			p.Errorf("docker %s: got %s, want nothing left", kind, left)
		}
	}
	return l
}

// The real Gemini CLI plays a cycle with a scripted model on this machine. The learner stores
// each response unchanged.
func TestGeminiLearns(t *testing.T) {
	lab.Long(t)
	playCycle(t, programs["gemini"], "gemini-3.8-flash")
}

// A CLI of another family plays the same cycle, with the learner's default model for it.
// TestBuilderOfTheSettings of cmd/internal/learn checks the default models of other agents.
func TestAgentsLearn(t *testing.T) {
	lab.Long(t)
	programs["claude"].needed(t)
	playCycle(t, programs["claude"], "claude-sonnet-5-5")
}

// The user's own agent learns in containers, too.
func TestCustomAgentLearns(t *testing.T) {
	if os.Getenv(mustAgents) == "" {
		t.Skip("only with " + mustAgents)
	}
	p := learnProject(t, lab.File(t, "learn-one-cycle.yaml"))
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+lab.File(t, "learn-own-agent.yaml"))
	l := learn(p, 0, "add two numbers", "--agent", "mine", "--cycles", "1")
	if c := l.Cycles[0]; !c.OK || strings.TrimSpace(c.Ran.Output) != "42" {
		t.Fatalf("the cycle: got %+v, want it ok with the output 42", l)
	}
	const at = "solutions/add-two-numbers/"
	if got, want := p.Read(at+"memory.txt"), "- Print the result in a sentence\n"; got != want {
		t.Errorf("memory.txt: got %q, want %q", got, want)
	}
	rows := strings.Split(strings.TrimSpace(p.Read(at+".abl/logs/tokens.csv")), "\n")
	if len(rows) != 6 {
		t.Fatalf("the ledger: got %d rows, want 6: %v", len(rows), rows)
	}
	wants(t, "the ledger", rows[1], ",mine,", ",cli,")
}

func playCycle(t *testing.T, a program, model string) {
	p := learnProject(t, lab.File(t, "learn-one-cycle.yaml"))
	m := a.serve(t, p, "scenario.yaml", nil)
	begun := time.Now()
	l := learn(p, 0, "add two numbers", "--agent", a.name, "--cycles", "1")
	t.Logf("a cycle by %s took %v", a.name, time.Since(begun))
	c := l.Cycles[0]
	if !l.Done || l.Best != 1 || !c.OK || c.Ran == nil || c.Ran.Exit != 0 || c.Review == nil {
		t.Fatalf("the learner: got %+v, want it done, with cycle 1 as the best, run and reviewed", l)
	}
	if n := strings.Count(c.Review.Summary(), ": OK\n"); n != 3 || len(c.Silent) > 0 || len(c.Dropped) != 1 {
		t.Errorf("got %d good reviews, the silent %v and the dropped %v, want 3, none and one", n, c.Silent, c.Dropped)
	}
	wants(t, "the program's output", c.Ran.Output, "the sum is 42", "run.sh")
	lacks(t, "the program's view", c.Ran.Output, "tokens.csv", "memory.txt", "scenario.yaml")
	const at = "solutions/add-two-numbers/"
	for name, want := range map[string]string{
		"memory.txt":         "- Print the result in a sentence",
		"mistakes.txt":       "- There is no test of the sum",
		"cycle-1/output.txt": "I made a script.\nIt adds.",
		"cycle-1/learnings.txt": "- LEARNING: Print the result in a sentence\n" +
			"- LEARNING: Task completed successfully",
	} {
		if got := strings.TrimRight(p.Read(at+name), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	wants(t, "prompts.md", p.Read(at+"prompts.md"), "# Current Prompt\n\nWrite programs and their tests.\n"+
		"\\# Past Prompts\nAll of them.\n\n# Past Prompts\n\n## Version 1 - ")
	if p.Read(at+"code/run.sh") == "" {
		t.Error("code/run.sh: got no file, want the program")
	}
	for _, name := range []string{"prompt.txt", "planted", "seen.txt"} {
		if p.Exists(at + "code/" + name) {
			t.Errorf("code/%s: got a file, want only the program as it was written", name)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(p.Read(at + ".abl/logs/tokens.csv"))).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("the ledger: got %v, %v, want 6 rows", rows, err)
	}
	wants(t, "the ledger", strings.Join(rows[1], ","), "generate", model,
		"1000", "1020", "gateway", "s1-c1-generate.1", a.name)
	if n := m.asked.Load(); n < 5 {
		t.Errorf("requests of the model: got %d, want 5 or more", n)
	}
	if files := holding(t, p.Dir, a.key()); len(files) > 0 {
		t.Errorf("files with the key: got %v, want none", files)
	}
}

// Hostile programs store nothing, reach no host and end in time, and the cycle's folder stays as
// the agent left it.
func TestHostileProgram(t *testing.T) {
	lab.Long(t)
	p := learnProject(t, lab.File(t, "learn-attacks.yaml"))
	p.Write(".abl/config.yaml", "version: 1\nlimits: {memory: 1g, cpus: 1}\n")
	l := learn(p, 0, "attack", "--agent", "scripted", "--scenario", "scenario.yaml", "--cycles", "2")
	flood, rest := l.Cycles[0], l.Cycles[1]
	const tooMuch = "the program failed: it printed more than 8 MiB"
	if flood.OK || flood.Failure != tooMuch || flood.Avoids != 1 {
		t.Errorf("the flood: got %+v, want the failure %q and one avoided mistake", flood, tooMuch)
	}
	kept := p.Read("solutions/attack/.abl/logs/calls/s1-c1-run.1/stdout")
	lacks(t, "the output of the flood", flood.Ran.Output+kept[:1000], "\x1b")
	if !rest.OK || !rest.Ran.Running || rest.Ran.Ports != "" || l.Best != 2 {
		t.Errorf("the rest: got %+v with %+v, best %d, want ok, running, no ports, best 2", rest, rest.Ran, l.Best)
	}
	wants(t, "the program's output", rest.Ran.Output, "home holds 0, the folder", "nobody", "stdin is at its end")
	lacks(t, "the program's output", rest.Ran.Output, "REACHED", "the folder 0")
	for _, name := range []string{"cycle-2/precious.txt", "code/precious.txt"} {
		if got, want := p.Read("solutions/attack/"+name), "mine"; got != want {
			t.Errorf("%s: got %q, want %q as the agent left it", name, got, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(p.Dir, "solutions/attack/code")); err != nil || len(entries) != 2 {
		t.Errorf("code: got %v, %v, want 2 files", entries, err)
	}
}

// abl is killed while an author works, and again right after a reviewer has responded. The next
// runs attach to the first call, read the end of the second one, and repeat no call.
func TestLearnerIsKilled(t *testing.T) {
	p := learnProject(t, lab.File(t, "learn-counts-its-starts.yaml"))
	args := []string{"learn", "count", "--agent", "scripted", "--scenario", "scenario.yaml", "--cycles", "1"}
	env := p.Env
	for _, points := range []string{"call.started=kill", "call.outcome=2*off->kill"} {
		p.Env = append(env[:len(env):len(env)], "ABL_FAILPOINTS="+points)
		if r := p.Run(args...); r.Code != -1 {
			t.Fatalf("%s: got exit %d, want a kill: %s%s", points, r.Code, r.Stdout, r.Stderr)
		}
	}
	p.Env = env
	l := learn(p, 0, args[1:]...)
	c := l.Cycles[0]
	if l.Best != 1 || strings.TrimSpace(c.Ran.Output) != "1" || c.Remembers != 1 || c.Version != 1 {
		t.Errorf("the cycle: got %+v with %+v, want one start that is remembered, as version 1", c, c.Ran)
	}
	calls, err := os.ReadDir(filepath.Join(p.Dir, l.Project, ".abl/logs/calls"))
	if err != nil || len(calls) != 6 {
		t.Errorf("calls: got %v, %v, want 6", calls, err)
	}
	rows, err := csv.NewReader(strings.NewReader(p.Read(l.Project + "/.abl/logs/tokens.csv"))).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Errorf("the ledger: got %v, %v, want 6 rows", rows, err)
	}
}
