package crash

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/testing/lab"
)

// replayed is a scene whose first iteration passes, on tests that abl replays
// itself. They ask a command, which nothing answers where there is no app, and say ok
// unless a file tells them otherwise.
func replayed(t *testing.T) *scene {
	t.Helper()
	wantEngine(t)
	t.Parallel()
	s := newScene(t, nil)
	config := s.Read(".abl/config.yaml")
	s.Write(".abl/config.yaml", strings.Replace(config, "evidence: off", "evidence: required", 1)+
		"verifier_commands: {look: {command: cat word.txt, output: shown}}\n")
	s.Write("scenario.yaml", lab.File(t, "replayed.yaml"))
	return s
}

// A replay leaves nothing that a kill could spoil: it is made anew, and the
// verdict is the one that it would have been.
func TestKilledAmidAReplay(t *testing.T) {
	for _, point := range []string{"replay.before", "replay.standing"} {
		t.Run(point, func(t *testing.T) {
			if point == "replay.before" {
				lab.Long(t)
			}
			s := replayed(t)
			s.die(point + "=kill")
			out := s.finish()
			if calls := s.Read(".abl/logs/tokens.csv"); strings.Count(calls, "p1-verify") != 1 {
				t.Errorf("the Verifier was paid again:\n%s", calls)
			}
			if !strings.Contains(out.Stdout, "replay: 1 of 1 tests are ok") {
				t.Errorf("it was not replayed:\n%s", out.Stdout)
			}
		})
	}
}

// A signal amid a replay stops it and leaves nothing behind.
func TestSignalAmidAReplay(t *testing.T) {
	lab.Long(t)
	s := replayed(t)
	r := s.start("replay.standing=1*pause")
	s.atPause("replay.standing")
	r.signal(syscall.SIGINT)
	s.release("replay.standing")
	s.stopped(r, syscall.SIGINT)
	s.finish()
}

// What comes out now so, now so, is a failure that says how often it was which.
func TestFlakyIsAFailure(t *testing.T) {
	lab.Long(t)
	s := replayed(t)
	s.Write(".abl/config.yaml", strings.Replace(s.Read(".abl/config.yaml"), "loop: {", "loop: {max_verifier_iterations: 1, ", 1))
	last := "      - {write: verifier_reports/"
	s.Write("scenario.yaml", strings.Replace(s.Read("scenario.yaml"), last, "      - {write: doubt, text: \"x\\n\"}\n"+last, 1))
	r := s.start("replay.before=2*off->1*pause")
	s.atPause("replay.before") // of the second one: the first is made together with that against nothing
	if err := os.Remove(filepath.Join(s.Dir, ".abl/tests/doubt")); err != nil {
		t.Fatal(err)
	}
	s.release("replay.before")
	events := r.end(3)
	if got := events[len(events)-1].Verdict; got != "fail" {
		t.Errorf("verdict %s", got)
	}
	failed := s.Read(".abl/tests/failed_specs.md")
	if !strings.Contains(failed, "1 of 2 runs gave: wrong") {
		t.Errorf("failed_specs.md says\n%s", failed)
	}
	s.settled()
}
