package look

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/config"
	"abl/internal/ledger"
	"abl/internal/state"
)

// heardOf returns the input of notify.command for these events and this end.
func heardOf(t *testing.T, command string, code int, events ...state.Event) (heard, said string) {
	t.Helper()
	dir := t.TempDir()
	s := &project.Project{In: &cli.Input{}, Folder: project.Folder{
		Paths:  state.NewProject(dir, "src", ".abl/tests"),
		Conf:   &config.Loaded{},
		Prices: func() (ledger.Prices, error) { return ledger.Prices{}, nil },
	}}
	s.Conf.Notify.Command = command
	n := Notifying(s, state.Func(func(e state.Event) {
		if e.Kind == state.Note {
			said += e.Text
		}
	}))
	if n.limit != notifyTime {
		t.Errorf("time limit: got %s, want %s", n.limit, notifyTime)
	}
	n.limit = 5 * time.Second
	if strings.Contains(command, "sleep") {
		n.limit = time.Millisecond
	}
	for _, e := range events {
		n.Emit(e)
	}
	n.Ended(state.Event{Phase: 2, Text: "the end \x1b[2J", Verdict: "pass"}, code)
	data, _ := os.ReadFile(filepath.Join(dir, "heard"))
	return string(data), said
}

func TestNotifier(t *testing.T) {
	begins := state.Event{Kind: state.PhaseStart, Phase: 2}
	for code, want := range map[int]string{
		exit.Passed: "passed", exit.Stuck: "stuck", exit.Unverified: "unverified", exit.Budget: "budget", exit.Away: "fault", exit.Bug: "fault",
		exit.TERM: "", exit.INT: "", exit.HUP: "",
	} {
		heard, said := heardOf(t, "cat >>heard", code, begins)
		if got, _, _ := strings.Cut(strings.TrimPrefix(heard, `{"event":"`), `"`); got != want || said != "" {
			t.Errorf("exit code %d: got %q, message %q, want %q and no message", code, heard, said, want)
		}
		if want != "" && !strings.Contains(heard, `"text":"the end \\u001b[2J","cost_usd":"unknown"`) {
			t.Errorf("exit code %d: got %s, want the escaped text and an unknown cost", code, heard)
		}
	}
	t.Run("nothing new", func(t *testing.T) {
		if heard, _ := heardOf(t, "cat >>heard", exit.Passed); heard != "" {
			t.Errorf("notification of nothing new: got %s, want none", heard)
		}
	})
	t.Run("waits", func(t *testing.T) {
		until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		heard, _ := heardOf(t, "cat >>heard", exit.INT, begins, state.Event{Kind: state.Wait, Phase: 2, MS: 60_000},
			state.Event{Kind: state.Wait, Phase: 2, MS: 60_001, Until: until, Text: "the provider is unavailable"})
		if strings.Count(heard, "\n") != 1 || !strings.Contains(heard, `"event":"waiting"`) || !strings.Contains(heard, `"until":"2026-03-01T12:00:00Z"`) || strings.Contains(heard, "exit") {
			t.Errorf("notification of a wait: got %s, want one line with its end and no exit code", heard)
		}
	})
	t.Run("fails", func(t *testing.T) {
		for command, want := range map[string]string{"echo why; exit 3": "exit code 3: why", "sleep 600": "the command took longer than 1ms", "exit 0": ""} {
			if _, said := heardOf(t, command, exit.Passed, begins); !strings.Contains(said, want) || want == "" && said != "" {
				t.Errorf("%s: got the message %q, want %q", command, said, want)
			}
		}
	})
}
