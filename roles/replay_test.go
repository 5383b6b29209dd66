package roles

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
	"abl/internal/witness"
)

// replayer has an app that is ready, and tests of no file.
func replayer(t *testing.T) (*stage, *Replayer) {
	s := newStage(t, web, `{"event":"ready"}`)
	s.app.Boxes.Port, s.app.Life = web.Port, time.Hour
	return s, &Replayer{App: s.app, Image: "i", Tests: func(_ context.Context, w io.Writer, _, as string) error {
		out := tar.NewWriter(w)
		err := out.WriteHeader(&tar.Header{Name: as + "/", Mode: 0o755, Typeflag: tar.TypeDir})
		return errors.Join(err, out.Close())
	}}
}

// A witness that ended before the tests did has not seen all: the replay says so.
func TestWitnessGone(t *testing.T) {
	s, r := replayer(t)
	s.engine.Scripts["replay"] = func(b sandbox.Box) sandbox.Exit {
		must(t, s.engine.Kill(t.Context(), b.Reach.Join))
		prints(b, "1..0\n")
		return sandbox.Exit{}
	}
	must(t, os.MkdirAll(s.runner.Project.Call("p1-verify-1.1"), 0o755))
	out, err := r.Run(t.Context(), Replay{Key: "p1-verify-1.1/replay-app-1", Against: TheApp, Limit: time.Minute})
	if err != nil || !strings.Contains(out.Gone, "the witness at the app's door ended before the tests did") {
		t.Errorf("%+v, %v", out, err)
	}
}

// Tests that fill the volume that they run in are ended, and prove nothing.
func TestReplayWritesTooMuch(t *testing.T) {
	s, r := replayer(t)
	s.app.Disk = DiskQuota{Bytes: 60 << 20, Every: time.Millisecond}
	s.engine.Used = func(volume string) int64 {
		if volume == s.app.scratch() {
			return 0
		}
		return 70 << 20
	}
	s.engine.Scripts["replay"] = func(b sandbox.Box) sandbox.Exit {
		prints(b, "1..1\nok 1 - P1.C1\n")
		<-t.Context().Done()
		return sandbox.Exit{}
	}
	must(t, os.MkdirAll(s.runner.Project.Call("p1-verify-1.1"), 0o755))
	out, err := r.Run(t.Context(), Replay{Key: "p1-verify-1.1/replay-app-1", Against: TheApp, Limit: time.Hour})
	if err != nil || !strings.Contains(out.Gone, "abl ended run.sh: it wrote 69 MiB into its copy") || out.Late {
		t.Errorf("got %+v, %v", out, err)
	}
}

// Nothing that tests can read tells them in which replay they are: not the names of what is
// mounted, and not what they are handed.
func TestReplaysLookAlike(t *testing.T) {
	s, r := replayer(t)
	for _, p := range []Replay{
		{Key: "p1-verify-1.1/replay-app-1", Against: TheApp, Limit: 10 * time.Minute},
		{Key: "p1-verify-1.1/replay-altered-1", Against: TheApp, Limit: time.Minute, Altering: &witness.Altering{}},
		{Key: "p1-verify-1.1/replay-no app", Against: NoApp, Limit: 10 * time.Minute},
		{Key: "p1-verify-1.1/replay-empty", Against: Empty, Limit: 10 * time.Minute},
	} {
		t.Run(path.Base(p.Key), func(t *testing.T) {
			var box sandbox.Box
			var run helper.RunSpec
			var cmds helper.CmdSpec
			s.engine.Scripts["replay"] = func(b sandbox.Box) sandbox.Exit {
				box = b
				for name, into := range map[string]any{"run.json": &run, "commands.json": &cmds} {
					data, err := os.ReadFile(filepath.Join(sandboxtest.Host(b, helper.In), name))
					if err = errors.Join(err, json.Unmarshal(data, into)); err != nil {
						t.Error(err)
					}
				}
				prints(b, "1..0\n")
				return sandbox.Exit{}
			}
			call := s.runner.Project.Call("p1-verify-1.1")
			for _, left := range []string{path.Base(p.Key) + "/app", underWay + "X/app"} { // by an abl that was killed
				must(t, os.MkdirAll(filepath.Join(call, left), 0o755))
			}
			r.begun = sync.Once{}
			out, err := r.Run(t.Context(), p)
			if err != nil || string(out.Output) != "1..0\n" {
				t.Fatalf("%+v, %v", out, err)
			}
			for _, m := range box.Mounts {
				if strings.Contains(m.Source, "replay-") {
					t.Errorf("the tests see %q", m.Source)
				}
			}
			left := time.Until(time.Unix(run.Deadline, 0)).Round(time.Minute)
			if left != 15*time.Minute || len(cmds.Token) < 26 {
				t.Errorf("they end after %s, and their word is %q", left, cmds.Token)
			}
			data, err := os.ReadFile(filepath.Join(s.runner.Project.Call(p.Key), "stdout"))
			if err != nil || string(data) != "1..0\n" {
				t.Errorf("the record has %q, %v", data, err)
			}
			entries, _ := os.ReadDir(s.runner.Project.Call("p1-verify-1.1"))
			for _, e := range entries {
				if !strings.HasPrefix(e.Name(), "replay-") {
					t.Errorf("beside it is %s", e.Name())
				}
			}
		})
	}
	if got := s.kinds(); strings.Contains(got, "app_failed") {
		t.Errorf("events %s", got)
	}
	for _, name := range s.engine.Left() {
		if !strings.Contains(name, "holder") && !strings.Contains(name, "net-") && !strings.Contains(name, "door") {
			t.Errorf("left on the engine: %s", name)
		}
	}
}
