package learn

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/internal/outlet"
)

// stub is a coding CLI that answers by what it is asked.
const stub = `#!/bin/sh
ask=$(cat)
echo "$0 $*" >> "$LOG"
case "$ask" in
*"You review a program"*) printf 'ARCHITECTURE: OK\nSECURITY: key in source\n' ;;
*"LEARNING: <"*) printf 'LEARNING: Use a pool\nLEARNING: Task completed successfully\n' ;;
*"MISTAKE: <"*) printf 'MISTAKE: No tests\n' ;;
*"You improve the instructions"*) printf 'Better.\n' ;;
*"do fail"*) exit 3 ;;
*"do hang"*) [ -e "$LOG.hung" ] || { : > "$LOG.hung"; exec sleep 1000; }; echo 'echo hello' > run.sh ;;
*) printf 'echo "$GEMINI_API_KEY" > leak; echo hello\n' > run.sh; echo made ;;
esac
`

// call runs agent-learner in a directory of its own, with stubs for the CLIs.
type person struct {
	*testing.T
	dir string
}

func newPerson(t *testing.T) person {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"claude", "gemini"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("LOG", filepath.Join(dir, "log"))
	t.Setenv("GEMINI_API_KEY", "a-key-of-nobody-1234")
	return person{t, dir}
}

func (p person) call(stdin string, args ...string) (code int, out, voice string) {
	p.Helper()
	var o, e bytes.Buffer
	code = cli.Main(p.Context(), app("test"), args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func (p person) read(name string) string {
	p.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.Fatal(err)
	}
	return string(data)
}

func wants(t *testing.T, what, have string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(have, text) {
			t.Errorf("%s lacks %q:\n%s", what, text, have)
		}
	}
}

func TestSessionOnTheHost(t *testing.T) {
	p := newPerson(t)
	code, out, voice := p.call("", "tell the time", "--runtime", "host", "-c", "2")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, voice)
	}
	wants(t, "the warning", voice, "--runtime host: agents and the programs that they write run as you")
	wants(t, "what is told", out,
		"============================================================\nAgent Learner Starting...\nTask: tell the time\nAgent: claude (use --agent to change)\nModel: sonnet (use --model to change)\nLearning cycles: 2\n",
		"************************************************************\nLEARNING CYCLE 1/2 [Agent: claude | Model: sonnet]\n************************************************************\nUsing agent: claude | model: sonnet\n",
		"LEARNING CYCLE 2/2", "It ended with exit code 0", "SECURITY: key in source", "DESIGN: nothing was said of it", "dropped   Task completed successfully (generic)",
		"code, from cycle 2", "- Use a pool", "- No tests")
	if got := strings.Count(p.read("log"), "claude -p --model sonnet --dangerously-skip-permissions --output-format stream-json --verbose\n"); got != 10 {
		t.Errorf("the CLI was called %d times: %s", got, p.read("log"))
	}
	const at = "solutions/tell-the-time/"
	if p.read(at+"memory.txt") != "- Use a pool\n" || p.read(at+"mistakes.txt") != "- No tests\n" || !strings.HasPrefix(p.read(at+"prompts.md"), "# Current Prompt\n\nBetter.\n") {
		t.Error("what was learned is not kept as it should be")
	}
	if got := p.read(at + "cycle-1/leak"); got != "\n" {
		t.Errorf("the program saw the key: %q", got)
	}
	if entries, err := os.ReadDir("solutions/.run"); err != nil || len(entries) != 0 {
		t.Errorf("processes are still noted: %v, %v", entries, err)
	}
	wants(t, "the ledger", p.read(at+".abl/logs/tokens.csv"), ",1,1,generate,sonnet,", ",none,s1-c2-improve.1,claude,")
}

// records is a CLI that answers by claude's own records: what it used is in the
// ledger, priced, and held against the budget of the next call.
const records = `#!/bin/sh
case "$(cat)" in
*"You review a program"*) said='SECURITY: OK' ;;
*) echo 'echo hello' > run.sh; said=made ;;
esac
echo '{"type":"system","subtype":"init","session_id":"s"}'
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'"$said"'"}]}}'
echo '{"type":"result","subtype":"success","result":"x","session_id":"s","modelUsage":{"claude-sonnet-4-5":{"inputTokens":1000,"outputTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}}'
`

func TestUsageOnTheHost(t *testing.T) {
	p := newPerson(t)
	if err := os.WriteFile("claude", []byte(records), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", p.dir+":"+os.Getenv("PATH"))
	code, told, voice := p.call("", "tell the time", "--runtime", "host", "-c", "1", "--budget-tokens", "1500")
	wants(t, "the last word", told, "the budget of this phase is used up: 2000 of 1500 tokens")
	wants(t, "the end", voice, "the budget is reached: 2000 of 1500 tokens of the phase are used; what was done is kept", "hint: raise budget.phase.tokens in .abl/config.yaml and run the same command again, or go on with the same command and --budget-tokens +1500")
	if code != 6 {
		t.Errorf("exit %d", code)
	}
	const at = "solutions/tell-the-time/"
	wants(t, "the ledger", p.read(at+".abl/logs/tokens.csv"), ",1,1,generate,claude-sonnet-4-5,1000,0,", ",0.003,cli,", "s1-c1-review.1,claude,")
	if got := p.read(at + "cycle-1/review.txt"); got != "SECURITY: OK" {
		t.Errorf("review.txt holds %q", got)
	}
	if code, out, voice := p.call("", "tell the time", "--runtime", "host", "-c", "1", "--budget-tokens", "9000"); code != 0 || !strings.Contains(out, "Going on where an earlier run stopped: cycle 1, learnings") {
		t.Errorf("exit %d: %s%s", code, out, voice)
	}
}

func TestJSON(t *testing.T) {
	p := newPerson(t)
	code, out, voice := p.call("", "do fail", "--runtime", "host", "-c", "1", "--agent", "gemini", "--json")
	var r sessionReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 3 {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	if c := r.Cycles[0]; r.Best != 0 || !r.Done || c.OK || c.Failure != "the agent failed: it ended with exit code 3" || c.Version != 1 || c.Mistaken[0] != "No tests" {
		t.Errorf("%+v", r)
	}
	wants(t, "the voice", voice, "Agent Learner Starting...", "Phase 1: write the program (attempt 2)", "no cycle of 1 made a program that runs", "hint: see solutions/do-fail/cycle-1")
}

func TestUsage(t *testing.T) {
	p := newPerson(t)
	for _, c := range []struct {
		args  []string
		wants string
	}{
		{nil, "a task is missing"},
		{[]string{"x", "-c", "0"}, "the number of cycles is 0, want 1 to 10"},
		{[]string{"x", "--cycles", "99"}, "the number of cycles is 99, want 1 to 10"},
		{[]string{"x", "-c", "two"}, "whole number"},
		{[]string{"x", "-a", "gemni"}, "gemini"},
		{[]string{"x", "-m", "a b"}, "is not the name of a model"},
		{[]string{"x", "y"}, "takes [TASK] and no more"},
		{[]string{"  "}, "the task is empty"},
		{[]string{"x", "--what"}, "what"},
		{[]string{"x", "--runtime", "moon"}, "moon"},
		{[]string{"debug", "parse", "poem", os.DevNull}, `cannot parse "poem"`},
		{[]string{"debug", "parse", "review", "missing"}, "cannot read the file"},
		{[]string{"x", "--runtime", "host", "-a", "scripted"}, "cannot run the scripted agent on the host"},
	} {
		code, out, voice := p.call("", c.args...)
		if code != 2 || out != "" && !strings.HasPrefix(out, "====") {
			t.Errorf("%q: exit %d, %q", c.args, code, out)
		}
		wants(t, strings.Join(c.args, " "), voice, c.wants)
	}
}

func TestReplThroughAPipe(t *testing.T) {
	p := newPerson(t)
	code, out, voice := p.call(":memory\n:agent\n:agent gemini\n:model flash\n:mode\n:agents\n:cycles 11\n:cycles 1\n:clear\n:quit now\n\ntell the time\n:m\n:mistakes\n:p\n:h\n:q\nnever\n", "--repl", "--runtime", "host")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, voice)
	}
	wants(t, "what is told", out,
		"There is no current project yet: type a task first.\nAgent: claude, model: sonnet\nAgent: gemini, model: gemini-2.5-pro\nModel: flash (of gemini)\nthere is no :mode; did you mean :model?\nthere is no :agents; did you mean :agent?\n"+
			"\"11\" is no number of cycles: 1 to 10\nCycles: 1\n:quit takes nothing, but got \"now\"\n",
		"LEARNING CYCLE 1/1 [Agent: gemini | Model: flash]", "Session summary: tell the time", "learnings 1 in", "memory    1 in solutions/tell-the-time/memory.txt", "# Past Prompts\n\n## Version 1 - ", ":mistakes :mi  "+"        mistakes to avoid in it\n")
	if strings.Contains(out, "never") {
		t.Error("it went on after :q")
	}
	if code, _, voice = p.call("do fail", "--repl", "--runtime", "host", "-c", "1"); code != 3 {
		t.Errorf("a failed task through a pipe: exit %d: %s", code, voice)
	}
}

func TestDebug(t *testing.T) {
	p := newPerson(t)
	for name, text := range map[string]string{
		"review": "**SECURITY:** OK\n", "learnings": "- LEARNING: Use \x1b[31ma pool\nLEARNING: none\n", "prompts.md": "Write code.\n", "answer": "```\n# Past Prompts\n```\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, out, _ := p.call("", "debug", "parse", "review", "review", "--json"); !strings.Contains(out, `{"category":"SECURITY","state":"ok","text":"OK"}`) {
		t.Error(out)
	}
	_, out, voice := p.call("", "debug", "parse", "learnings", "learnings")
	if out != "- Use \\x1b[31ma pool\n" || !strings.Contains(voice, "dropped: none (says that there is none)") {
		t.Errorf("%q, %q", out, voice)
	}
	_, out, _ = p.call("", "debug", "prompts", "prompts.md", "answer")
	wants(t, "prompts.md", out, "# Current Prompt\n\n\\# Past Prompts\n\n# Past Prompts\n\n## Version 1 - ", "\n\nWrite code.\n")
}

// An agent of the settings is offered as abl's own are; what it tells of its tokens
// is no part of its answer.
func TestAgentOfOnesOwn(t *testing.T) {
	p := newPerson(t)
	const settings = `version: 1
agents:
  mine:
    model: my-model
    usage: used
    env: {BETTER: Better by}
    command: |
      case $ABL_ROLE in
      generate) grep -q "tell the time" "$ABL_PROMPT" && echo 'echo noon' > run.sh && echo made ;;
      learnings) echo "LEARNING: Use a pool" ;;
      mistakes) echo "MISTAKE: No tests" ;;
      improve) echo "$BETTER $ABL_MODEL."; echo "$HOME" > ../home ;;
      *) echo "SECURITY: OK" ;;
      esac
      echo '{"used": {"input_tokens": 5}}'
`
	if err := os.MkdirAll(".abl", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(".abl/config.yaml", []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, voice := p.call(":agent mine\n:cycles 1\ntell the time\n", "--repl", "--runtime", "host")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, voice)
	}
	wants(t, "what is told", out, "Agent: mine, model: my-model", "LEARNING CYCLE 1/1 [Agent: mine | Model: my-model]", "- Use a pool", "- No tests")
	const at = "solutions/tell-the-time/"
	if got := p.read(at + "prompts.md"); !strings.HasPrefix(got, "# Current Prompt\n\nBetter by my-model.\n\n#") {
		t.Errorf("prompts.md: %s", got)
	}
	if got := p.read(at + "home"); got != os.Getenv("HOME")+"\n" {
		t.Errorf("its home was %q", got)
	}
	code, _, voice = p.call("", "x", "--agent", "mien")
	if code != 2 || !strings.Contains(voice, `did you mean "mine"?`) {
		t.Errorf("exit %d: %s", code, voice)
	}
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		":h": ":help ", ":m": ":m", ":mi": ":mistakes ", ":": ":", ":agent g": ":agent gemini ", ":agent c": ":agent c", ":agent x": ":agent x", "a task": "a task", ":zz": ":zz",
	} {
		if got := completed(line, agentNames()); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "solutions", ".history")
	h := openHistory(path)
	for _, line := range []string{"one", "two", "two", " ", ":q"} {
		h.Add(line)
	}
	h = openHistory(path)
	if h.Len() != 3 || h.At(0) != ":q" || h.At(2) != "one" {
		t.Errorf("%+v", h.lines)
	}
}

func TestStartOf(t *testing.T) {
	if got := startOf("12 (a) b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"); got != "4711" {
		t.Error(got)
	}
	if got := startOf(""); got != "unknown" {
		t.Error(got)
	}
}

// The lesson makes the difference, and what was tried is not tried again.
func TestEvalOnTheHost(t *testing.T) {
	p := newPerson(t)
	agent := "#!/bin/sh\necho x >> \"$LOG\"\nif grep -q 'print 42'; then echo 'echo 42' > run.sh; else echo 'echo 41' > run.sh; fi\n"
	for path, text := range map[string]string{
		"bin/claude": agent, "solutions/known/memory.txt": "- always print 42\n", "tasks.yaml": "version: 1\ntasks:\n- task: say a number\n  expect: \"42\"\n- task: say another\n  expect: \"42\"\n",
		"solutions/known/mistakes.txt": "", "solutions/known/prompts.md": "Write a program.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(p.dir, "bin")+":"+os.Getenv("PATH"))
	args := []string{"eval", "tasks.yaml", "--learned", "solutions/known", "--runtime", "host", "--repeat", "3", "--attempts", "2"}
	code, out, voice := p.call("", args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, voice)
	}
	wants(t, "the table", out, "2 tasks, 3 trials of each on each side, at most 2 attempts; claude (sonnet)",
		"success     0 % (0 to 39)           100 % (61 to 100)       +100 points (+45 to +100)", "attempts    2.0                     1.0                     -1.0 (-1.0 to -1.0)",
		"tokens      unknown                 unknown                 unknown", "of shares by Wilson", "What was learned pays.")
	before := p.read("log")
	if n := strings.Count(before, "x"); n != 18 {
		t.Errorf("the agent was asked %d times, want 6 with and 12 without", n)
	}
	code, out, _ = p.call("", append(args, "--json")...)
	var r evalReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Verdict != "pays" || len(r.Trials) != 12 || r.Trials[0].Failure != `the program failed: its output lacks "42"` || p.read("log") != before {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	if code, _, voice = p.call("", "eval", "tasks.yaml", "--runtime", "host"); code != 2 || !strings.Contains(voice, "nothing was learned in solutions/say-a-number") {
		t.Errorf("exit %d: %s", code, voice)
	}
}

// Where progress cannot stand in one line, the first of each thing is told.
func TestProgressThroughAPipe(t *testing.T) {
	var out bytes.Buffer
	tell := &teller{out: &out, in: &cli.Input{Outlet: outlet.New(nil)}}
	for _, text := range []string{"tools: step 1/3 FROM x", "tools: step 2/3 RUN \x1b[2J", "gemini: step 1/2 FROM tools", "gemini: step 2/2 RUN npm"} {
		tell.progress(text)
	}
	tell.action("> shell ls")
	if got := out.String(); got != "  tools: step 1/3 FROM x\n  gemini: step 1/2 FROM tools\n  > shell ls\n" {
		t.Errorf("%q", got)
	}
}
