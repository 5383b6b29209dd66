package crash

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/testing/lab"
)

// replayed returns a scene whose first iteration passes, with tests that abl replays. The tests
// ask a command, which does not respond without an app, and pass unless a file says otherwise.
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

// After a kill during a replay, the next run replays the tests again and reaches the same verdict.
func TestKilledDuringAReplay(t *testing.T) {
	lab.Long(t)
	for _, point := range []string{"replay.before", "replay.ready"} {
		t.Run(point, func(t *testing.T) {
			if point == "replay.before" {
				lab.Long(t)
			}
			s := replayed(t)
			s.runUntilKilled(point + "=kill")
			out := s.finish()
			if calls := s.Read(".abl/logs/tokens.csv"); strings.Count(calls, "p1-verify") != 1 {
				t.Errorf("the ledger: got\n%s\nwant one call of the Verifier", calls)
			}
			if !strings.Contains(out.Stdout, "replay: 1 of 1 tests are ok") {
				t.Errorf("the output: got\n%s\nwant a replay of 1 of 1 tests", out.Stdout)
			}
		})
	}
}

// A signal during a replay stops it, and nothing is left on the engine.
func TestSignalDuringAReplay(t *testing.T) {
	lab.Long(t)
	s := replayed(t)
	r := s.start("replay.ready=1*pause")
	s.atPause("replay.ready")
	r.signal(syscall.SIGINT)
	s.release("replay.ready")
	s.checkStopped(r, syscall.SIGINT)
	s.finish()
}

// A test with varying results fails, and failed_specs.md says how often it failed.
func TestFlakyIsAFailure(t *testing.T) {
	lab.Long(t)
	s := replayed(t)
	s.Write(".abl/config.yaml", strings.Replace(s.Read(".abl/config.yaml"), "loop: {",
		"loop: {max_verifier_iterations: 1, ", 1))
	last := "      - {write: verifier_reports/"
	s.Write("scenario.yaml", strings.Replace(s.Read("scenario.yaml"), last,
		"      - {write: doubt, text: \"x\\n\"}\n"+last, 1))
	r := s.start("replay.before=2*off->1*pause")
	s.atPause("replay.before") // of the second replay: the first runs together with the one against nothing
	if err := os.Remove(filepath.Join(s.Dir, ".abl/tests/doubt")); err != nil {
		t.Fatal(err)
	}
	s.release("replay.before")
	events := r.end(3)
	if got := events[len(events)-1].Verdict; got != "fail" {
		t.Errorf("got verdict %s, want %q", got, "fail")
	}
	failed := s.Read(".abl/tests/failed_specs.md")
	if !strings.Contains(failed, "1 of 2 runs gave: wrong") {
		t.Errorf("failed_specs.md: got\n%s\nwant one of two runs as wrong", failed)
	}
	s.checkNothingLeft()
}
