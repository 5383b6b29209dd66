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

// learnProject is a directory in which tasks are learned from.
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

// learned is what `abl learn --json` printed.
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
		p.Fatalf("%v: %s", err, r.Stdout)
	}
	var state learner.State
	if err := json.Unmarshal([]byte(p.Read(l.Project+"/.abl/learn.json")), &state); err != nil {
		p.Fatal(err)
	}
	for _, kind := range []string{"ps -aq", "volume ls -q", "network ls -q"} {
		if left := docker(p, append(strings.Fields(kind), "--filter", "label=abl.project="+state.ID)...); left != "" {
			p.Errorf("docker %s: %s is left", kind, left)
		}
	}
	return l
}

// oneCycle is what a model does in a cycle: it writes, reviews, learns and
// improves, and uses the tokens that the test expects.
const oneCycle = `version: 1
calls:
  - role: generate
    steps:
      - write: run.sh
        text: "echo \"the sum is $((40 + 2))\"\nls /workspace/src/* > seen.txt; cat seen.txt\n"
      - say: |-
          I made a script.
          It adds.
    usage: [{model: m, input: 1000, candidates: 20, total: 1020}]
  - role: review
    steps:
      - run: "touch planted || echo it cannot be changed"
      - say: "**ARCHITECTURE:** OK\nDESIGN: OK\nCODE_QUALITY: no comments\nSECURITY: OK\nTESTS: none"
    usage: [{model: m, input: 100, candidates: 5, total: 105}]
  - role: learnings
    steps: [{say: "- LEARNING: Print the result in a sentence\n- LEARNING: Task completed successfully"}]
    usage: [{model: m, input: 100, candidates: 5, total: 105}]
  - role: mistakes
    steps: [{say: "MISTAKE: There is no test of the sum"}]
    usage: [{model: m, input: 100, candidates: 5, total: 105}]
  - role: improve
    steps: [{say: "Write programs and their tests.\n# Past Prompts\nAll of them."}]
    usage: [{model: m, input: 100, candidates: 5, total: 105}]
`

// The real Gemini CLI plays a cycle against a scripted model on this machine, and
// each answer is stored as it was given.
func TestGeminiLearns(t *testing.T) {
	lab.Long(t)
	learnsInOneCycle(t, programs["gemini"], "gemini-2.5-pro")
}

// So do the others, each with the learner's default model for it.
func TestAgentsLearn(t *testing.T) {
	lab.Long(t)
	for name, model := range map[string]string{"claude": "claude-sonnet-5-5", "codex": "gpt-5.2", "copilot": "claude-sonnet-4"} {
		t.Run(name, func(t *testing.T) {
			programs[name].needed(t)
			learnsInOneCycle(t, programs[name], model)
		})
	}
}

// An agent of the person's own learns in containers as well.
func TestAgentsOfOnesOwnLearn(t *testing.T) {
	if os.Getenv(mustAgents) == "" {
		t.Skip("only with " + mustAgents)
	}
	p := learnProject(t, oneCycle)
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+`agents:
  mine:
    usage: used
    command: |
      case $ABL_ROLE in
      generate) grep -q "add two numbers" "$ABL_PROMPT" && echo 'echo $((40 + 2))' > run.sh && echo made ;;
      learnings) echo "LEARNING: Print the result in a sentence" ;;
      *) echo "MISTAKE: None of the sums are tested" ;;
      esac
      echo '{"used": {"input_tokens": 5, "output_tokens": 2}}'
`)
	l := learn(p, 0, "add two numbers", "--agent", "mine", "--cycles", "1")
	if c := l.Cycles[0]; !c.OK || strings.TrimSpace(c.Ran.Output) != "42" {
		t.Fatalf("%+v", l)
	}
	const at = "solutions/add-two-numbers/"
	if got := p.Read(at + "memory.txt"); got != "- Print the result in a sentence\n" {
		t.Errorf("memory.txt: %q", got)
	}
	if rows := strings.Split(strings.TrimSpace(p.Read(at+".abl/logs/tokens.csv")), "\n"); len(rows) != 6 || !strings.Contains(rows[1], ",mine,") || !strings.Contains(rows[1], ",cli,") {
		t.Errorf("the ledger: %v", rows)
	}
}

func learnsInOneCycle(t *testing.T, a program, model string) {
	p := learnProject(t, oneCycle)
	m := a.serve(t, p, "scenario.yaml", nil)
	begun := time.Now()
	l := learn(p, 0, "add two numbers", "--agent", a.name, "--cycles", "1")
	t.Logf("a cycle by %s took %v", a.name, time.Since(begun))
	c := l.Cycles[0]
	if !l.Done || l.Best != 1 || !c.OK || c.Ran == nil || c.Ran.Exit != 0 || c.Review == nil || strings.Count(c.Review.Summary(), ": OK\n") != 3 || len(c.Silent) > 0 || len(c.Dropped) != 1 {
		t.Fatalf("%+v", l)
	}
	wants(t, "what the program printed", c.Ran.Output, "the sum is 42", "run.sh")
	lacks(t, "what the program could see", c.Ran.Output, "tokens.csv", "memory.txt", "scenario.yaml")
	const at = "solutions/add-two-numbers/"
	for name, want := range map[string]string{
		"memory.txt": "- Print the result in a sentence\n", "mistakes.txt": "- There is no test of the sum\n",
		"cycle-1/output.txt": "I made a script.\nIt adds.", "cycle-1/learnings.txt": "- LEARNING: Print the result in a sentence\n- LEARNING: Task completed successfully",
	} {
		if got := p.Read(at + name); strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	wants(t, "prompts.md", p.Read(at+"prompts.md"), "# Current Prompt\n\nWrite programs and their tests.\n\\# Past Prompts\nAll of them.\n\n# Past Prompts\n\n## Version 1 - ")
	if p.Read(at+"code/run.sh") == "" || p.Exists(at+"code/prompt.txt") || p.Exists(at+"code/planted") || p.Exists(at+"code/seen.txt") {
		t.Error("code/ is not the program alone, as it was written")
	}
	rows, err := csv.NewReader(strings.NewReader(p.Read(at + ".abl/logs/tokens.csv"))).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Fatalf("the ledger: %v, %v", rows, err)
	}
	wants(t, "the ledger", strings.Join(rows[1], ","), "generate", model, "1000", "1020", "gateway", "s1-c1-generate.1", a.name)
	if n := m.asked.Load(); n < 5 {
		t.Errorf("the model was asked %d times", n)
	}
	if files := holding(t, p.Dir, a.key()); len(files) > 0 {
		t.Errorf("the key is in %v", files)
	}
}

// Programs that attack: none of them keeps anything, reaches anybody or outlives
// its time, and the cycle's folder is as the agent left it.
func TestHostileProgram(t *testing.T) {
	lab.Long(t)
	p := learnProject(t, `version: 1
calls:
  - role: generate
    iteration: 1
    steps:
      - write: run.sh
        text: |
          yes "$(printf 'a flood \033[2J')" | head -c 200000000
  - role: generate
    iteration: 2
    steps:
      - write: precious.txt
        text: mine
      - write: run.sh
        text: |
          rm -rf "$HOME" "$HOME"/* /workspace/src/* ./* / 2>/dev/null
          echo "home holds $(ls -A "$HOME" 2>/dev/null | wc -l), the folder $(ls /workspace/src | wc -l)"
          (exec 3<>/dev/tcp/1.1.1.1/80) 2>/dev/null && echo REACHED || echo nobody
          env | grep -ci key
          setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' &
          for i in $(seq 1 50); do (while :; do sleep 1; done) & done
          trap "" TERM
          read -r line || echo stdin is at its end
          f() { f | f & }; f # and from here on bash may wait for ever for a process
          while :; do :; done
  - role: mistakes
    steps: [{say: "MISTAKE: It floods the output"}]
  - role: improve
    steps: [{say: "Print little."}]
  - role: review
    steps: [{say: "SECURITY: it attacks"}]
  - role: learnings
    steps: [{say: NONE}]
`)
	p.Write(".abl/config.yaml", "version: 1\nlimits: {memory: 1g, cpus: 1}\n")
	l := learn(p, 0, "attack", "--agent", "scripted", "--scenario", "scenario.yaml", "--cycles", "2")
	flood, rest := l.Cycles[0], l.Cycles[1]
	if flood.OK || flood.Failure != "the program failed: it printed more than 8 MiB" || flood.Avoids != 1 {
		t.Errorf("the flood: %+v", flood)
	}
	lacks(t, "what is kept of the flood", flood.Ran.Output+p.Read("solutions/attack/.abl/logs/calls/s1-c1-run.1/stdout")[:1000], "\x1b")
	if !rest.OK || !rest.Ran.Running || rest.Ran.Ports != "" || l.Best != 2 {
		t.Errorf("the rest: %+v %+v", rest, rest.Ran)
	}
	wants(t, "what it printed", rest.Ran.Output, "home holds 0, the folder", "nobody", "stdin is at its end")
	lacks(t, "what it printed", rest.Ran.Output, "REACHED", "the folder 0")
	if p.Read("solutions/attack/cycle-2/precious.txt") != "mine" || p.Read("solutions/attack/code/precious.txt") != "mine" {
		t.Error("the cycle's folder is not as the agent left it")
	}
	if entries, err := os.ReadDir(filepath.Join(p.Dir, "solutions/attack/code")); err != nil || len(entries) != 2 {
		t.Errorf("code/ holds %v, %v", entries, err)
	}
}

// abl is killed while an author works, and again right after a reviewer has
// answered: the next runs attach to the one call, read the other's end, and make
// none twice.
func TestLearnerIsKilled(t *testing.T) {
	p := learnProject(t, `version: 1
calls:
  - role: generate
    steps:
      - run: "echo x >> begun; sleep 2"
      - write: run.sh
        text: "wc -l < begun\n"
  - role: review
    steps: [{say: "TESTS: none"}]
  - role: learnings
    steps: [{say: "LEARNING: Count your steps"}]
  - role: mistakes
    steps: [{say: NONE}]
  - role: improve
    steps: [{say: "Count."}]
`)
	args := []string{"learn", "count", "--agent", "scripted", "--scenario", "scenario.yaml", "--cycles", "1"}
	env := p.Env
	for _, points := range []string{"call.started=kill", "call.outcome=2*off->kill"} {
		p.Env = append(env[:len(env):len(env)], "ABL_FAILPOINTS="+points)
		if r := p.Run(args...); r.Code != -1 {
			t.Fatalf("%s: exit %d: %s%s", points, r.Code, r.Stdout, r.Stderr)
		}
	}
	p.Env = env
	l := learn(p, 0, args[1:]...)
	if c := l.Cycles[0]; l.Best != 1 || strings.TrimSpace(c.Ran.Output) != "1" || c.Remembers != 1 || c.Version != 1 {
		t.Errorf("%+v %+v", c, c.Ran)
	}
	calls, err := os.ReadDir(filepath.Join(p.Dir, l.Project, ".abl/logs/calls"))
	if err != nil || len(calls) != 6 {
		t.Errorf("calls %v, %v", calls, err)
	}
	rows, err := csv.NewReader(strings.NewReader(p.Read(l.Project + "/.abl/logs/tokens.csv"))).ReadAll()
	if err != nil || len(rows) != 6 {
		t.Errorf("the ledger: %v, %v", rows, err)
	}
}
