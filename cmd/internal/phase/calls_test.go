package phase

import (
	"os"
	"path/filepath"
	"testing"

	"abl/cmd/internal/cli"
	"abl/internal/config"
	"abl/internal/redact"
	"abl/roles"
	"abl/roles/agent"

	"github.com/google/go-cmp/cmp"
)

// The scripted agent is understood without a script, one of the project's own by its
// settings, and one that they have no more by its lines.
func TestTranscriptOfACall(t *testing.T) {
	s := &Project{In: &cli.Input{Safe: redact.NewSanitizer([]string{"API_KEY=sk-canary-4711"})}, Folder: Folder{Conf: &config.Loaded{}}}
	s.Conf.Agents = map[string]config.Agent{"mine": {Command: "x", Usage: "usage"}}
	const stdout = `{"type":"message","text":"I have sk-canary-4711."}` + "\n" + `{"type":"output","text":"x"}`
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
			if err := Transcript(s, c, each); err != nil || got != nil {
				t.Errorf("of a call that printed nothing: %v, %v", got, err)
			}
			if err := os.WriteFile(filepath.Join(dir, "stdout"), []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
			err := Transcript(s, c, each)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}
