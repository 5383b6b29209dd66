package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/audit"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// keptCall is the record of a call that ended.
func keptCall(t *testing.T, p state.Project, key string, class outcome.Outcome) {
	t.Helper()
	rec := roles.Record{Dir: p.Call(key)}
	put(t, rec.Dir, "started", "")
	for _, err := range []error{
		rec.Write("intent.json", roles.Intent{Key: key, Image: "abl/tools:1", Agent: "scripted"}),
		rec.SaveOutcome(roles.Outcome{Key: key, Class: class, Model: "m", Report: "r.md"}),
		rec.Write("boundary.json", roles.Boundary{Container: "box", Made: sandbox.Proof{
			sandbox.Same("image", "abl/tools:1 sha256:abc", "abl/tools:1 sha256:abc"), sandbox.Same("state", "a", "b")}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// keptRun is the record of a replay, the n-th in time.
func keptRun(t *testing.T, p state.Project, key, name string, n int, output string, out Result) {
	t.Helper()
	dir := filepath.Join(p.Call(key), replayDir+name)
	put(t, dir, "stdout", output)
	k := keptReplay{At: time.Unix(int64(n), 0), Against: TheApp, Result: out}
	if err := (roles.Record{Dir: dir}).Write(replayFile, k); err != nil {
		t.Fatal(err)
	}
}

func TestTrail(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	if calls, replays, err := Trail(p, 1, 2); err != nil || calls != nil || replays != nil {
		t.Errorf("trail without a record: got calls %v, replays %v, error %v, want none", calls, replays, err)
	}
	for key, class := range map[string]outcome.Outcome{
		"p1-build-2.1": outcome.Failed, "p1-build-2.2": outcome.Done, "p1-verify-2.10": outcome.Done, "p1-verify-2.9": outcome.Crashed,
		"p1-build-1.1": outcome.Done, "p1-build-22.1": outcome.Done, "p2-build-2.1": outcome.Done, "p1-build-2.1x": outcome.Done, "p1-build-2.01": outcome.Done,
	} {
		keptCall(t, p, key, class)
	}
	put(t, p.Call("p1-verify-2.10"), "finding.json", `{"verdict":"fail"}`)
	keptRun(t, p, "p1-verify-2.10", "no app", 3, "1..1\nnot ok 1 - P1.C1\n", Result{Exit: 1, Took: 1500 * time.Millisecond})
	keptRun(t, p, "p1-verify-2.10", "app-1", 2, "1..2\nok 1 - P1.C1\nok 2 - P1.C2 # SKIP no\n", Result{})
	keptRun(t, p, "p1-verify-2.10", "phase1-app-1", 1, "", Result{AppFailed: "exit code 1"})
	put(t, filepath.Join(p.Call("p1-verify-2.10"), "replay-app-2"), "stdout", "amid which abl was killed")
	calls, replays, err := Trail(p, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := listed(calls, replays), `p1-build-2.1 builder 1 failed "" abl/tools:1 image sha256:abc 1/2
p1-build-2.2 builder 2 done "" abl/tools:1 image sha256:abc 1/2
p1-verify-2.9 verifier 9 crashed "" abl/tools:1 image sha256:abc 1/2
p1-verify-2.10 verifier 10 done "fail" abl/tools:1 image sha256:abc 1/2
phase1-app-1 0/0 exit 0 0ms "exit code 1" <nil>
app-1 1/2 exit 0 0ms "" .abl/logs/calls/p1-verify-2.10/replay-app-1/stdout
no app 0/1 exit 1 1500ms "" .abl/logs/calls/p1-verify-2.10/replay-no app/stdout
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if sum := replays[0]; sum.Output != nil {
		t.Errorf("output of an app that did not start: got %+v, want none", sum.Output)
	}
}

func listed(calls []audit.Call, replays []audit.Replay) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "%s %s %d %s %q %s image %s %d/%d\n", c.Key, c.Role, c.Attempt, c.Class, c.Verdict, c.Image, c.Boundary.Image, c.Boundary.Held, c.Boundary.Checks)
	}
	for _, r := range replays {
		path := "<nil>"
		if r.Output != nil {
			path = r.Output.Path
		}
		fmt.Fprintf(&b, "%s %d/%d exit %d %dms %q %s\n", r.Name, r.OK, r.Tests, r.Exit, r.MS, r.Failed, path)
	}
	return b.String()
}

// Replays of an abl that was killed before its verdict are removed.
func TestForgetReplays(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	const key = "p2-verify-1.1"
	if err := ForgetReplays(p, key, true); err != nil {
		t.Fatal(err)
	}
	make := func() {
		keptRun(t, p, key, "app-2", 1, "", Result{})
		keptRun(t, p, key, "phase1-app-1", 2, "", Result{})
		if err := (roles.Record{Dir: p.Call(key)}).Write(roles.RegressionFile, map[string]string{"verdict": "pass"}); err != nil {
			t.Fatal(err)
		}
	}
	for earlier, want := range map[bool]string{true: "app-2 ", false: "phase1-app-1 regression "} {
		make()
		if err := ForgetReplays(p, key, earlier); err != nil {
			t.Fatal(err)
		}
		_, replays, err := Trail(p, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range replays {
			got += r.Name + " "
		}
		if _, ok, err := roles.Read[map[string]string](roles.Record{Dir: p.Call(key)}, roles.RegressionFile); ok && err == nil {
			got += "regression "
		}
		if got != want {
			t.Errorf("records left: got %q, want %q", got, want)
		}
	}
}
