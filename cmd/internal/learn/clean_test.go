package learn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/cli"
	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/orchestrator/learner"
	"abl/roles"
)

// broom is an engine that records the labels of the objects to remove.
type broom struct {
	there []sandbox.Object
	asked []string // the state files whose objects it is asked for
	swept []string
}

func (b *broom) Objects(_ context.Context, labels map[string]string) ([]sandbox.Object, error) {
	_, path, _ := strings.Cut(labels[sandbox.LabelState], ":")
	b.asked = append(b.asked, path)
	return b.there, nil
}

func (b *broom) Sweep(_ context.Context, labels map[string]string, _ func(sandbox.Status) bool) ([]string, error) {
	b.swept = append(b.swept, labels[sandbox.LabelProject])
	return []string{"abl-" + labels[sandbox.LabelProject] + "-x"}, nil
}

// Clean removes what projects left, by the project's label, except a project that a run
// works on.
func TestClean(t *testing.T) {
	here := t.TempDir()
	begin := func(rel string) (learner.Home, learner.State) {
		h := learner.Home{Root: filepath.Join(here, learner.Folder, rel)}
		s, _, err := learner.Open(h, "a task", "gemini", "m", 1, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return h, s
	}
	left, s := begin("left")
	busy, _ := begin("busy")
	free, err := hostfs.Lock(filepath.Join(busy.Private(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	rec := roles.Record{Dir: filepath.Join(left.Private(), "logs", "calls", s.Key())}
	if err := errors.Join(os.MkdirAll(rec.Dir, 0o755), os.WriteFile(filepath.Join(rec.Dir, "intent.json"), []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	const earlier = "learn-0123456789"
	b := &broom{there: []sandbox.Object{
		{Name: sandbox.Name(s.ID, "a"), Labels: map[string]string{sandbox.LabelProject: s.ID}},
		{Name: sandbox.Name(earlier, "a"), Labels: map[string]string{sandbox.LabelProject: earlier}},
	}}
	in := &cli.Input{Stdout: &out, Stderr: &stderr, Safe: redact.NewSanitizer(nil)}
	in.Bare.Stderr = &stderr
	removed, err := Clean(t.Context(), in, here, b)
	if want := []string{s.ID, earlier}; err != nil || removed != 2 || !slices.Equal(b.swept, want) {
		t.Errorf("Clean: got %d of %v, error %v, want 2 of %v; output:\n%s", removed, b.swept, err, want, out.String())
	}
	if want := []string{filepath.Join(left.Root, ".abl/learn.json")}; !slices.Equal(b.asked, want) {
		t.Errorf("state files of the requested objects: got %q, want %q", b.asked, want)
	}
	wants(t, "what is said", out.String()+stderr.String(), "removed abl-"+s.ID+"-x\n", "skipped solutions/busy: a run works on it")
	if _, err := os.Stat(filepath.Join(rec.Dir, "stopped.json")); err != nil {
		t.Errorf("stopped.json of the call: got error %v, want the file", err)
	}
	if removed, err := Clean(t.Context(), in, t.TempDir(), b); removed != 0 || err != nil {
		t.Errorf("Clean without solutions: got %d, error %v, want 0 and none", removed, err)
	}
}
