package modelserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/usage"
	"abl/roles/agent"
)

func str(s string) *string { return &s }

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func find(t *testing.T, c agent.ScriptCall, dir string) Script {
	t.Helper()
	places := Places{Workspaces: map[string]string{"builder": dir}, AppURL: "http://app:3000"}
	s := agent.Scenario{Calls: []agent.ScriptCall{c}}
	script, err := Scenario(s, places, now)("Do it. " + Mark("verifier", 9, 9, 9) + " " + Mark("builder", 1, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func TestSourceRefusesConversationWithoutCall(t *testing.T) {
	s := agent.Scenario{Calls: []agent.ScriptCall{{Role: "builder", Phase: 1}}}
	source := Scenario(s, Places{}, now)
	for prompt, want := range map[string]string{
		"hello":                       `the conversation does not contain "[abl call ROLE phase N iteration N attempt N]"`,
		Mark("tester", 1, 1, 1):       `the conversation does not contain "[abl call ROLE phase N iteration N attempt N]"`,
		Mark("verifier", 1, 1, 1):     "the scenario has no call for [abl call verifier phase 1 iteration 1 attempt 1]",
		Mark("builder", 2, 3, 4):      "the scenario has no call for [abl call builder phase 2 iteration 3 attempt 4]",
		"[abl call builder phase 1 ]": `the conversation does not contain "[abl call ROLE phase N iteration N attempt N]"`,
	} {
		t.Run(prompt, func(t *testing.T) {
			if _, err := source(prompt); err == nil || err.Error() != want {
				t.Errorf("%q: got %v, want %s", prompt, err, want)
			}
		})
	}
}

func TestScriptEndsAndUsage(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	usage := []agent.ScriptUsage{
		{Model: "a", Count: usage.Count{Input: n(5), Candidates: n(2), Total: n(9)}},
		{Model: "b", Count: usage.Count{Input: n(1), Thoughts: n(3)}},
	}
	for end, want := range map[agent.End]End{
		"": Stop, agent.EndOK: Stop, agent.EndSilent: Cut,
		agent.EndError: Refuse, agent.EndHang: NoAnswer, agent.EndCrash: Stop,
	} {
		t.Run(string(end), func(t *testing.T) {
			got := find(t, agent.ScriptCall{
				Role:  "builder",
				End:   end,
				Usage: usage,
				Steps: []agent.Step{{Say: str("bye {{phase}}")}},
			}, "/w")
			if got.End != want || got.Name != "builder phase 1 iteration 2 attempt 1" || end != agent.EndCrash && got.Final != "bye 1\n" {
				t.Errorf("end %q: got %+v, want end %q, the name of the call, and its text without a crash",
					end, got, want)
			}
			if u := (Usage{Prompt: 6, Candidates: 2, Thoughts: 3, Total: 13}); got.Usage != u {
				t.Errorf("usage: got %+v, want %+v", got.Usage, u)
			}
			if crash := strings.Contains(fmt.Sprint(got.Turns), "kill -9 $PPID"); crash != (end == agent.EndCrash) {
				t.Errorf("end %q: got turns %v, want a crash: %t", end, got.Turns, end == agent.EndCrash)
			}
		})
	}
}

// carryOut executes the calls like the CLI does, with the same checks.
func carryOut(t *testing.T, dir string, turns []Turn) (output string) {
	t.Helper()
	for _, turn := range turns {
		switch turn.Name {
		case "write_file":
			path := turn.Args["file_path"].(string)
			if strings.HasSuffix(path, "package.json") || strings.HasSuffix(path, "Makefile") {
				t.Fatalf("path of write_file: got %q, want one that the CLI does not refuse", path)
			}
			if rel, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(rel) {
				t.Fatalf("path of write_file: got %s, want one in the workspace %s", path, dir)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(turn.Args["content"].(string)), 0o644); err != nil {
				t.Fatal(err)
			}
		case "run_shell_command":
			command := turn.Args["command"].(string)
			for _, refused := range []string{"$(", "`", "<(", ">(", "\n"} {
				if strings.Contains(command, refused) {
					t.Fatalf("shell command: got %q, want one without %q, which the CLI refuses", command, refused)
				}
			}
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			output += string(out)
			if err != nil {
				output += err.Error() + "\n"
			}
		default:
			t.Fatalf("function: got %s, want write_file or run_shell_command", turn.Name)
		}
	}
	return output
}

// A call has the same effect by the script of a model and by agent.Play.
func TestScriptHasTheEffectsOfPlay(t *testing.T) {
	call := agent.ScriptCall{Role: "builder", Steps: []agent.Step{
		{Say: str("hello")},
		{Write: "it's/a file", Text: "one\n{{iteration}}\n", Mode: "0755"},
		{Append: "it's/a file", Text: "$(not run)\n"},
		{Append: "-new/x", Text: "y"},
		{Write: "package.json", Text: "{}\n"},
		{Write: "sub/Makefile", Text: "all:\n", Mode: "0600"},
		{Write: "gone/x", Text: "x"},
		{Delete: "gone"},
		{Run: "echo plain > plain.txt; exit 4"},
		{Run: "echo $(echo substituted) > sub.txt; exit 3"},
		{Run: "echo a > multi.txt\necho b >> multi.txt"},
		{Sleep: agent.Duration(time.Microsecond)},
		{Print: 1000},
		{Report: str("report {{time}}")},
		{Raw: str("nothing")},
	}}
	played, called := t.TempDir(), t.TempDir()
	direct := call
	direct.Phase, direct.Iteration, direct.Attempt = 1, 2, 1
	p := agent.Player{Call: direct, AppURL: "http://app:3000", Dir: played, Out: io.Discard, Now: now}
	if code := p.Play(t.Context()); code != 0 {
		t.Fatalf("got exit code %d from Play, want 0", code)
	}
	output := carryOut(t, called, find(t, call, called).Turns)
	if !strings.Contains(output, "exit status 3\n") || !strings.Contains(output, "exit status 4\n") {
		t.Errorf("output: got %.300s, want exit status 3 and exit status 4 in it", output)
	}
	if diff := cmp.Diff(readTree(t, played), readTree(t, called)); diff != "" {
		t.Errorf("files of the calls (-want +got)\n%s", diff)
	}
}

func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, rerr := filepath.Rel(dir, path)
		data, err := os.ReadFile(path)
		files[rel] = info.Mode().String() + " " + string(data)
		return errors.Join(rerr, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
