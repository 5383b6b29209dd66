package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/orchestrator/learner"
)

// stub makes a session's calls without containers: an agent that answers by its prompt, and a program
// that prints a word.
type stub struct{ dir string }

func openStub(_ context.Context, w *work, x *learner.Session, _ learner.State) (func(error), error) {
	x.Calls, x.Admit = stub{w.here}, func(string) error { return nil }
	return func(error) {}, nil
}

func (s stub) Ask(ctx context.Context, a learner.Call) (learner.Happened, error) {
	answer := learner.Happened{Fault: outcome.Fault{Class: outcome.Done}, Text: map[learner.Step]string{
		learner.Generate: "made", learner.Review: "ARCHITECTURE: OK\nSECURITY: key in source\n", learner.Learnings: "LEARNING: Use a pool\nLEARNING: Task completed successfully\n",
		learner.Mistakes: "MISTAKE: No tests\n", learner.Improve: "Better.\n",
	}[a.Step]}
	hung := filepath.Join(s.dir, "hung")
	switch _, err := os.Stat(hung); {
	case a.Step != learner.Generate:
	case strings.Contains(a.Prompt, "do fail"):
		return learner.Happened{Fault: outcome.Fault{Class: outcome.Failed, What: "it ended with exit code 3"}}, nil
	case strings.Contains(a.Prompt, "do hang") && err != nil:
		if err := os.WriteFile(hung, nil, 0o644); err != nil {
			return answer, err
		}
		<-ctx.Done()
		return learner.Happened{Fault: outcome.Fault{Class: outcome.Interrupted}}, nil
	default:
		return answer, os.WriteFile(filepath.Join(a.Dir, "run.sh"), []byte("echo hello\n"), 0o644)
	}
	return answer, nil
}

func (s stub) Try(context.Context, learner.Call) (learner.Happened, error) {
	return learner.Happened{Ran: &learner.Ran{OK: true, Output: "hello"}}, nil
}

// person runs agent-learner in a separate directory.
type person struct {
	*testing.T
	dir string
}

func newPerson(t *testing.T) person {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"ANTHROPIC_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, "a-key-of-nobody-1234")
	}
	return person{t, dir}
}

func (p person) call(stdin string, args ...string) (code int, out, stderr string) {
	p.Helper()
	var o, e bytes.Buffer
	code = cli.Main(p.Context(), app("test", openStub), args, strings.NewReader(stdin), &o, &e)
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
			t.Errorf("%s: got\n%s\nwant %q in it", what, have, text)
		}
	}
}

func TestSession(t *testing.T) {
	p := newPerson(t)
	code, out, stderr := p.call("", "tell the time", "-c", "2")
	if code != 0 {
		t.Fatalf("exit code: got %d with %s%s, want 0", code, out, stderr)
	}
	wants(t, "the output", out,
		"============================================================\nAgent Learner Starting...\nTask: tell the time\nAgent: gemini (use --agent to change)\nModel: gemini-3.8-flash (use --model to change)\nLearning cycles: 2\n",
		"************************************************************\nLEARNING CYCLE 1/2 [Agent: gemini | Model: gemini-3.8-flash]\n************************************************************\nUsing agent: gemini | model: gemini-3.8-flash\n",
		"LEARNING CYCLE 2/2", "It ended with exit code 0", "SECURITY: issues: key in source", "DESIGN: no answer", "dropped   Task completed successfully (generic)",
		"code, from cycle 2", "- Use a pool", "- No tests")
	const at = "solutions/tell-the-time/"
	if p.read(at+"memory.txt") != "- Use a pool\n" || p.read(at+"mistakes.txt") != "- No tests\n" || !strings.HasPrefix(p.read(at+"prompts.md"), "# Current Prompt\n\nBetter.\n") {
		t.Errorf("saved lessons: got %q, %q, %q, want one lesson, one mistake and the new prompt",
			p.read(at+"memory.txt"), p.read(at+"mistakes.txt"), p.read(at+"prompts.md"))
	}
}

func TestJSON(t *testing.T) {
	p := newPerson(t)
	code, out, stderr := p.call("", "do fail", "-c", "1", "--agent", "gemini", "--json")
	var r sessionReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 3 {
		t.Fatalf("got exit code %d, error %v with %s, want 3 and JSON", code, err, out)
	}
	if c := r.Cycles[0]; r.Best != 0 || !r.Done || c.OK || c.Failure != "the agent failed: it ended with exit code 3" || c.Version != 1 || c.Mistaken[0] != "No tests" {
		t.Errorf("got %+v, want a first cycle that failed with exit code 3 and its mistake", r)
	}
	wants(t, "the stderr", stderr, "Agent Learner Starting...", "Phase 1: write the program (attempt 2)", "none of 1 cycles wrote a program that runs", "hint: see solutions/do-fail/cycle-1")
}

func TestUsage(t *testing.T) {
	p := newPerson(t)
	for _, c := range []struct {
		args  []string
		wants string
	}{
		{nil, "a task is missing"},
		{[]string{"x", "-c", "0"}, `the number of cycles must be a whole number from 1 to 10, not "0"`},
		{[]string{"x", "--cycles", "99"}, `the number of cycles must be a whole number from 1 to 10, not "99"`},
		{[]string{"x", "-c", "two"}, "whole number"},
		{[]string{"x", "-a", "gemni"}, "gemini"},
		{[]string{"x", "-m", "a b"}, "want the name of a model, got \"a b\""},
		{[]string{"x", "y"}, "takes only [TASK]"},
		{[]string{"  "}, "the task is empty"},
		{[]string{"x", "--what"}, "what"},
		{[]string{"debug", "parse", "poem", os.DevNull}, `debug parse takes review, learnings or mistakes, not "poem"`},
		{[]string{"debug", "parse", "review", "missing"}, "cannot read the file"},
		{[]string{"x", "--runtime", "host"}, "unknown flag \"--runtime\""},
	} {
		code, out, stderr := p.call("", c.args...)
		if code != 2 || out != "" && !strings.HasPrefix(out, "====") {
			t.Errorf("%q: got exit code %d, output %q, want 2 and none", c.args, code, out)
		}
		wants(t, strings.Join(c.args, " "), stderr, c.wants)
	}
}

func TestReplThroughAPipe(t *testing.T) {
	p := newPerson(t)
	code, out, stderr := p.call(":memory\n:agent\n:agent claude\n:model opus\n:mode\n:agents\n:cycles 11\n:cycles 1\n:clear\n:quit now\n\ntell the time\n:m\n:mistakes\n:p\n:h\n:q\nnever\n", "--repl")
	if code != 0 {
		t.Fatalf("exit code: got %d with %s%s, want 0", code, out, stderr)
	}
	wants(t, "the output", out,
		"There is no current project yet: type a task first.\nAgent: gemini, model: gemini-3.8-flash, cycles: 3\nAgent: claude, model: claude-sonnet-5-5, cycles: 3\nAgent: claude, model: claude-opus-5-5, cycles: 3\nunknown command :mode; :help lists the commands\nunknown command :agents; :help lists the commands\n"+
			"the number of cycles must be a whole number from 1 to 10, not \"11\"\nAgent: claude, model: claude-opus-5-5, cycles: 1\n:quit takes no argument, but got \"now\"\n",
		"LEARNING CYCLE 1/1 [Agent: claude | Model: claude-opus-5-5]", "Session summary: tell the time", "learnings 1 in", "\n- Use a pool\n- No tests\n# Current Prompt\n", "# Past Prompts\n\n## Version 1 - ", ":mistakes :mi  "+"        show its mistakes to avoid\n")
	if strings.Contains(out, "never") {
		t.Errorf("output: got\n%s\nwant none after :q", out)
	}
	if code, _, stderr = p.call("do fail", "--repl", "-c", "1"); code != 3 {
		t.Errorf("a failed task through a pipe: got exit code %d with %s, want 3", code, stderr)
	}
	if code, _, stderr = p.call(strings.Repeat("x", 2<<20), "--repl"); code != 2 || !strings.Contains(stderr, "a task has more than 1 MiB") {
		t.Errorf("a task of 2 MiB through a pipe: got exit code %d with %s, want 2 and the limit", code, stderr)
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
		t.Errorf("parsed review: got %s, want SECURITY with the state ok", out)
	}
	_, out, _ := p.call("", "debug", "parse", "learnings", "learnings")
	if out != "- Use \\x1b[31ma pool\ndropped: none (generic)\n" {
		t.Errorf("got %q, want the lesson with its escape sequence in words", out)
	}
	_, out, _ = p.call("", "debug", "prompts", "prompts.md", "answer")
	wants(t, "prompts.md", out, "# Current Prompt\n\n\\# Past Prompts\n\n# Past Prompts\n\n## Version 1 - ", "\n\nWrite code.\n")
}

// An agent of the settings can be selected like abl's own.
func TestAgentOfOnesOwn(t *testing.T) {
	p := newPerson(t)
	if err := os.MkdirAll(".abl", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(".abl/config.yaml", []byte("version: 1\nagents:\n  mine:\n    model: my-model\n    command: \"true\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := p.call(":agent mine\n:cycles 1\ntell the time\n", "--repl")
	if code != 0 {
		t.Fatalf("exit code: got %d with %s%s, want 0", code, out, stderr)
	}
	wants(t, "the output", out, "Agent: mine, model: my-model", "LEARNING CYCLE 1/1 [Agent: mine | Model: my-model]")
	code, _, stderr = p.call("", "x", "--agent", "mien")
	if code != 2 || !strings.Contains(stderr, `--agent: agent.builder: unknown agent "mien"; did you mean "mine"?`) {
		t.Errorf("--agent mien: got exit code %d with %s, want 2 and the suggestion mine", code, stderr)
	}
}

// The actions of an agent are printed while it works.
func TestActionsArePrinted(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out, in: &cli.Input{Safe: redact.NewSanitizer(nil)}}
	p.Emit(state.Event{Kind: state.Action, Text: "shell \x1b[2J ls"})
	if got := out.String(); got != "  > shell \\x1b[2J ls\n" {
		t.Errorf("got %q, want the command with its escape sequence in words", got)
	}
}

// The agent, its model and its effort are those of the Builder in a phase.
func TestBuilderOfTheSettings(t *testing.T) {
	for name, c := range map[string]struct{ settings, typed, want string }{
		"none":              {"", ":agent\n", "gemini, model: gemini-3.8-flash"},
		"another agent":     {"", ":agent codex\n", "codex, model: gpt-6.2-sol"},
		"and another":       {"", ":agent codex\n:agent copilot\n", "copilot, model: gpt-6.1-sol"},
		"agent":             {"agent: claude\n", ":agent\n", "claude, model: claude-sonnet-5-5"},
		"model":             {"agent: {builder: claude}\nmodels: {builder: [opus, sonnet]}\n", ":agent\n", "claude, model: claude-opus-5-5"},
		"model of another":  {"agent: claude\nmodels: opus\n", ":agent codex\n", "codex, model: gpt-6.2-sol"},
		"model and another": {"agent: claude\nmodels: opus\n", ":model haiku\n", "claude, model: claude-haiku-5-5"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			if err := errors.Join(os.Mkdir(".abl", 0o755), os.WriteFile(".abl/config.yaml", []byte("version: 1\n"+c.settings), 0o644)); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := p.call(c.typed+":quit\n", "--repl")
			if lines := strings.Split(out, "\n"); code != 0 || len(lines) < 2 || lines[len(lines)-2] != "Agent: "+c.want+", cycles: 3" {
				t.Errorf("got exit %d, %q, want %q at the end: %s", code, out, c.want, stderr)
			}
		})
	}
}

func TestEffortOfTheSettings(t *testing.T) {
	p := newPerson(t)
	if err := errors.Join(os.Mkdir(".abl", 0o755), os.WriteFile(".abl/config.yaml", []byte("version: 1\neffort: {builder: low}\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	got := ""
	see := func(ctx context.Context, w *work, x *learner.Session, s learner.State) (func(error), error) {
		got = w.player.Efforts[0]
		return openStub(ctx, w, x, s)
	}
	var out, stderr bytes.Buffer
	code := cli.Main(p.Context(), app("test", see), []string{"x", "-c", "1"}, strings.NewReader(""), &out, &stderr)
	if code != 0 || got != "low" {
		t.Errorf("got exit %d and effort %q, want 0 and low: %s", code, got, &stderr)
	}
}
