package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"abl/internal/outcome"

	"github.com/google/go-cmp/cmp"
)

// sampled is an output of a real CLI against a stub, its exit code, and the expected result. A
// sample of "" printed nothing.
type sampled struct {
	sample  string
	exit    int
	want    string
	trouble outcome.Outcome
}

func trySamples(t *testing.T, name string, all []sampled) {
	t.Helper()
	seen := map[string]bool{"": true}
	for _, tt := range all {
		seen[tt.sample] = true
		t.Run(fmt.Sprintf("%s/%d", tt.sample, tt.exit), func(t *testing.T) {
			got := Usages(found(name), sampleOf(t, name, tt.sample), tt.exit)
			if diff := cmp.Diff(tt.want, show(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got.Trouble != tt.trouble || got.Finished != (got.Reason == "") {
				t.Errorf("trouble: got %q, want %q; finished: got %t with the reason %q, want a reason unless finished",
					got.Trouble, tt.trouble, got.Finished, got.Reason)
			}
		})
	}
	for _, f := range samplesOf(t, name) {
		if !seen[f] {
			t.Errorf("tests of the sample %s: got none, want one", f)
		}
	}
}

func found(name string) Agent {
	a, err := Find(name)
	if err != nil {
		panic(err)
	}
	return a
}

// offline is the scripted agent without a project.
var offline = Scripted(Scenario{}, "", Provider{})

func samplesOf(t testing.TB, name string) (files []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join("testdata", name))
	if err != nil || len(all) == 0 {
		t.Fatal("no samples of", name, err)
	}
	for _, f := range all {
		files = append(files, f.Name())
	}
	return files
}

func sampleOf(t testing.TB, name, file string) []byte {
	t.Helper()
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join("testdata", name, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// follow returns the actions in a sample, its session and its last message.
func follow(t *testing.T, a Agent, file string) (actions []string, session, said string) {
	t.Helper()
	r := a.NewReader(Call{Model: "m"})
	for _, m := range messagesIn(r, sampleOf(t, a.Name, file)) {
		if m.Line() != "" {
			actions = append(actions, m.Line())
		}
	}
	return actions, r.Result(0).Session, r.Result(0).Said
}

// FuzzReaders checks that no output causes a panic, unsorted rows, control characters in rows, or
// success without a report of it.
func FuzzReaders(f *testing.F) {
	var names []string
	for _, a := range clis {
		names = append(names, a.Name)
		for _, file := range samplesOf(f, a.Name) {
			f.Add(len(names)-1, sampleOf(f, a.Name, file), 0)
		}
	}
	f.Fuzz(func(t *testing.T, which int, stdout []byte, exit int) {
		name := names[max(which, 0)%len(names)]
		r := Usages(found(name), stdout, exit)
		if r.Finished != (r.Reason == "") || r.Finished && exit != 0 {
			t.Errorf("result: got finished %t, exit code %d, reason %q, want a reason unless finished with 0",
				r.Finished, exit, r.Reason)
		}
		if !slices.IsSortedFunc(r.Usage, func(a, b Usage) int { return strings.Compare(a.Model, b.Model) }) {
			t.Errorf("usage: got %+v, want it sorted by model", r.Usage)
		}
		for _, m := range messagesIn(found(name).NewReader(Call{}), stdout) {
			if m.Kind == "" || len(m.Text+m.Detail) > 2*maxMessage+100 || strings.ContainsFunc(m.Line(), unicode.IsControl) {
				t.Errorf("message: got kind %q, %d bytes, %.200q, want a short one without control characters",
					m.Kind, len(m.Text+m.Detail), m.Text)
			}
		}
		if strings.ContainsFunc(r.Reason+r.Session+show(r), unicode.IsControl) {
			t.Errorf("result: got %q, want no control character", r.Reason+r.Session+show(r))
		}
	})
}

// clis are the agents that use a model.
var clis = known[:len(known)-1]

// TestCommands checks unusual model names, and that no prompt is rewritten.
func TestCommands(t *testing.T) {
	for _, a := range clis {
		t.Run(a.Name, func(t *testing.T) {
			for _, odd := range []string{"--yolo", "a b", "a\nb"} {
				if _, err := a.FullName(odd); err == nil {
					t.Errorf("error of the model %q: got none, want one", odd)
				}
			}
			c := Call{Role: "builder", Phase: 2, Iteration: 3, Attempt: 1, Model: a.DefaultModel, Prompt: "/abl/in/prompt.md"}
			cmd, err := a.Command(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, there := cmd.Env[a.Provider.KeyVar]; a.Provider.API == "" || there || cmd.Env["HOME"] == "" {
				t.Errorf("command: got provider %+v, environment %v, want an API, a HOME and no key",
					a.Provider, cmd.Env)
			}
			if all := strings.Join(cmd.Argv, " ") + fmt.Sprint(cmd.Env); !strings.Contains(all, a.DefaultModel) {
				t.Errorf("command: got %q, want one with the model %s", all, a.DefaultModel)
			}
			if !slices.Contains(Names(), a.Name) {
				t.Errorf("names: got %v, want %s in them", Names(), a.Name)
			}
		})
	}
}

// tryLines passes lines to a reader, and exit code 0.
func tryLines(t *testing.T, a Agent, lines []string, cut bool, want string, is outcome.Outcome) {
	t.Helper()
	r := a.NewReader(Call{Model: "m"})
	for _, l := range lines {
		r.Line([]byte(l), cut)
	}
	got := r.Result(0)
	if diff := cmp.Diff(want, show(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.Trouble != is {
		t.Errorf("trouble: got %q, want %q", got.Trouble, is)
	}
}
