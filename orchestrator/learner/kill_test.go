package learner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// places are the failpoints between durable writes.
var places = []string{"learn.saved", "learn.merged", "learn.archived", "learn.copied", "learn.replacing"}

// TestMain lets the test binary play a session, for tests that kill it.
func TestMain(m *testing.M) {
	dir := os.Getenv("LEARN_TEST_PLAY")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := playIn(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func playIn(dir string) error {
	w := &world{write: map[string]string{"run.sh": "echo hi\n", "lib/a.txt": "a"}, ran: Ran{OK: true}, say: scripted}
	h := Home{Root: filepath.Join(dir, "solutions", "p")}
	s, _, err := Open(h, "a task", "gemini", "m", 2, time.Unix(0, 0))
	if err != nil {
		return err
	}
	_, err = w.session(h).Play(context.Background(), s)
	return err
}

// playKilled runs a session of two cycles in dir, which points kill.
func playKilled(t *testing.T, dir, points string) error {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEARN_TEST_PLAY="+dir, "ABL_FAILPOINTS="+points, "ABL_FAILPOINT_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil && points == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return err
}

// made returns all files of a project as text.
func made(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	root := filepath.Join(dir, "solutions")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		text := string(data)
		if d.Name() == "learn.json" {
			text = regexp.MustCompile(`"(id|spent_ms)": .*`).ReplaceAllString(text, "")
		}
		rel, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "== %s\n%s\n", rel, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// After a kill at any place, at the first visit or the last, the next run of a session leads to the
// same files.
func TestKilledAnywhere(t *testing.T) {
	whole := t.TempDir()
	if err := playKilled(t, whole, strings.Join(places, "=note;")+"=note"); err != nil {
		t.Fatal(err)
	}
	want := made(t, whole)
	visits, err := os.ReadFile(filepath.Join(whole, "visits"))
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range places {
		n := strings.Count(string(visits), place+"\n")
		if n == 0 {
			t.Errorf("visits of %s: got 0, want some", place)
		}
		last := n - 1
		if place == "learn.saved" {
			last-- // after the last one the session has ended, and the same task begins a new one
		}
		for _, at := range slices.Compact([]int{0, last}) {
			t.Run(fmt.Sprintf("%s/%d", place, at), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				points := place + "=kill"
				if at > 0 {
					points = fmt.Sprintf("%s=%d*off->kill", place, at)
				}
				if err := playKilled(t, dir, points); err == nil || err.Error() != "signal: killed" {
					t.Fatalf("end of the session: got %v, want signal: killed", err)
				}
				if err := playKilled(t, dir, ""); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(made(t, dir), "\n")); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}
