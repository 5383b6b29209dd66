package project

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/internal/audit"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/redact"
	"abl/roles"
	"abl/roles/agent"

	"github.com/google/go-cmp/cmp"
)

// Output of the scripted agent is parsed without a script, and that of the user's own agent by its
// settings. Output of an agent that is no longer in the settings is shown line by line.
func TestTranscriptOfACall(t *testing.T) {
	s := &Project{In: &cli.Input{Safe: redact.NewSanitizer([]string{"API_KEY=sk-canary-4711"})}, Folder: Folder{Conf: &config.Loaded{}}}
	s.Conf.Agents = map[string]config.Agent{"mine": {Command: "x", Usage: "usage"}}
	const stdout = `{"type":"message","text":"I have sk-canary-4711."}` + "\n" + `{"type":"output","text":"x"}`
	const request = `{"seq":1,"kind":"request","request":{"model":"m","status":200},"usage":{"total":1234}}`
	for _, tt := range []struct {
		agent string
		want  []agent.Message
	}{
		{"scripted", []agent.Message{{Kind: agent.Said, Text: "I have [secret …11]."}, {Kind: agent.Returned, Detail: "x\n"}}},
		{"mine", []agent.Message{{Kind: agent.Said, Text: "I have [secret …11]."}}},
		{"gone", []agent.Message{{Kind: agent.Said, Text: "I have [secret …11]."}, {Kind: agent.Said, Text: `{"type":"output","text":"x"}`}}},
	} {
		t.Run(tt.agent, func(t *testing.T) {
			dir := t.TempDir()
			c := Call{Record: roles.Record{Dir: dir}, Intent: roles.Intent{Agent: tt.agent}}
			var got []agent.Message
			each := func(m agent.Message) { got = append(got, m) }
			if err := s.Transcript(c, each); err != nil || got != nil {
				t.Errorf("transcript of a call that printed nothing: got %v, error %v, want none", got, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "gateway.jsonl"), []byte(request), 0o644); err != nil {
				t.Fatal(err)
			}
			want := []agent.Message{{Kind: agent.Called, Text: "request to m, 1,234 tokens"}}
			err := s.Transcript(c, each)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("of a call that printed nothing: %v (-want +got)\n%s", err, diff)
			}
			got = nil
			if err := os.WriteFile(filepath.Join(dir, "stdout"), []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
			err = s.Transcript(c, each)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

// The changes of an iteration are read from the workspace that they were made in.
func TestStepChanges(t *testing.T) {
	s := published(t)
	records := []audit.Record{{Step: 1}, {Step: 2}}
	for dir, o := range map[string]git.Options{s.Paths.Src: s.SourceOptions(), s.Paths.Tests: {}} {
		repo, err := git.Open(dir, o)
		must(t, err)
		for i := range records {
			name := fmt.Sprintf("%s-%d", filepath.Base(dir), i)
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644))
			snap, err := repo.Snapshot(t.Context(), git.Message{Subject: name, Call: fmt.Sprintf("p1-build-%d.1", i+1)})
			must(t, err)
			if c := &records[i].Commits; dir == s.Paths.Src {
				c.Source = snap.Commit.Hash
			} else {
				c.Tests = snap.Commit.Hash
			}
		}
	}
	for dir, want := range map[string]string{s.Paths.Src: "1 src-1, 0 src-0", s.Paths.Tests: "1 tests-1, 0 tests-0"} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var got []string
			must(t, s.StepChanges(t.Context(), 1, dir, records, func(i int, _ string, c git.Change) error {
				got = append(got, fmt.Sprintf("%d %s", i, c.Path))
				return nil
			}))
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("got %q, want %q", text, want)
			}
		})
	}
}
