package learn

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// places are where a run is killed: between what it does for good.
var places = []string{"learn.saved", "learn.ended", "learn.entered", "learn.merged", "learn.archived", "learn.copied", "learn.replacing"}

// playKilled lets a session of two cycles on the host play in a directory of its own, killed where
// points say, and returns how it ended.
func playKilled(t *testing.T, dir, points string) error {
	t.Helper()
	cmd := exec.Command(os.Args[0], "tell the time", "--runtime", "host", "-c", "2")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LEARN_TEST_PLAY=1", "LOG="+filepath.Join(dir, "log"), "ABL_FAILPOINTS="+points, "ABL_FAILPOINT_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil && points == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return err
}

var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*Z?`)

// made is all that a project holds but records, and how often the agent was asked.
func made(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	root := filepath.Join(dir, "solutions")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "calls" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || d.Name() == "tokens.csv" || d.Name() == "lock" || strings.Contains(path, "/.run/") {
			return nil
		}
		data, err := os.ReadFile(path)
		text := clock.ReplaceAllString(string(data), "NOW")
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
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join(root, "tell-the-time/.abl/logs/tokens.csv"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "asked %d times, entered %d rows\n", strings.Count(string(log), "\n"), strings.Count(string(rows), "\n"))
	return b.String()
}

// Killed anywhere, at the first visit or the last, a session comes to the same
// files when it is run again, and no answered call is made twice.
func TestKilledAnywhere(t *testing.T) {
	p := newPerson(t)
	note := make([]string, len(places))
	for i, place := range places {
		note[i] = place + "=note"
	}
	if err := playKilled(t, p.dir, strings.Join(note, ";")); err != nil {
		t.Fatal(err)
	}
	want, visits := made(t, p.dir), p.read("visits")
	if !strings.HasSuffix(want, "asked 10 times, entered 11 rows\n") {
		t.Fatal(want)
	}
	for _, place := range places {
		n := strings.Count(visits, place+"\n")
		if n == 0 {
			t.Errorf("%s is never reached", place)
		}
		last := n - 1
		if place == "learn.saved" {
			last-- // after the last one the session is over, and the same task is a new one
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
					t.Fatalf("it ended with %v", err)
				}
				if err := playKilled(t, dir, ""); err != nil {
					t.Fatal(err)
				}
				if got := made(t, dir); got != want {
					t.Errorf("(-want +got)\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
				}
			})
		}
	}
}

// An agent that a killed run left is ended before another one writes in its folder.
func TestOrphanIsEnded(t *testing.T) {
	p := newPerson(t)
	agent := "#!/bin/sh\n[ -e ../../.run/$$ ] || : > \"$LOG.unnoted\"\ncat >/dev/null\n[ -e \"$LOG.hung\" ] || { echo $$ > \"$LOG.new\"; mv \"$LOG.new\" \"$LOG.hung\"; while :; do sleep 0.01; echo x >> late; done; }\necho 'echo hello' > run.sh\n"
	if err := os.WriteFile("claude", []byte(agent), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", p.dir+":"+os.Getenv("PATH"))
	cmd := exec.Command(os.Args[0], "tell the time", "--runtime", "host", "-c", "1")
	cmd.Env = append(os.Environ(), "LEARN_TEST_PLAY=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	t.Cleanup(func() { // whatever this test comes to, its agent would go on for ever
		_ = cmd.Process.Kill()
		if data, err := os.ReadFile(filepath.Join(p.dir, "log.hung")); err == nil {
			_, _ = fmt.Sscan(string(data), &pid)
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(stat), p.dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	for end := time.Now().Add(2 * time.Minute); pid == 0; time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile("log.hung"); err == nil {
			fmt.Sscan(string(data), &pid)
		}
		if time.Now().After(end) {
			t.Fatal("the agent was never started")
		}
	}
	if _, err := os.Stat("log.unnoted"); err == nil {
		t.Error("the agent ran before it was noted")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the agent ended with its abl: %v", err)
	}
	if code, out, voice := p.call("", "tell the time", "--runtime", "host", "-c", "1"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, voice)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) { // the kernel takes its time
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the agent of the killed run is still there: %s", stat)
		}
	}
	if _, err := os.Stat("solutions/tell-the-time/cycle-1/late"); err == nil {
		t.Error("it wrote into the folder of the next one")
	}
}
