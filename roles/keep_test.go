package roles

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

const (
	key  = "sesame-open-4711"
	evil = "\x1b]0;t\a\u009b2J\u202e\r"
)

func hiding() *redact.Sanitizer {
	o := &redact.Sanitizer{}
	o.Hide(key)
	return o
}

// spotless fails the test for every file below dir that holds the key or a control.
func spotless(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) || bytes.ContainsAny(data, "\x1b\a\u009b\u202e\r") {
			t.Errorf("%s holds %q", path, data)
		}
		return err
	})
	must(t, err)
}

// A link in a record, as a repository may bring one, is replaced and never written through.
func TestRecordsFollowNoLink(t *testing.T) {
	rec, outside := Record{t.TempDir()}, filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("kept"), 0o600))
	for name, write := range map[string]func(path string) error{
		"note":     func(path string) error { return rec.Write(filepath.Base(path), "second") },
		"output":   func(path string) error { return (&Boxes{}).createFiles(path) },
		"readable": func(path string) error { return writeInput(rec, map[string][]byte{"x": nil}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(rec.Dir, name)
			for _, at := range []string{path, path + ".new", rec.In()} {
				must(t, os.RemoveAll(at))
				must(t, os.Symlink(outside, at))
			}
			must(t, write(path))
			if got, err := os.ReadFile(outside); string(got) != "kept" || err != nil {
				t.Errorf("the file behind the link holds %q, %v, want what it held", got, err)
			}
		})
	}
	must(t, rec.Write(FoundFile, "first"))
	must(t, os.Remove(filepath.Join(rec.Dir, FoundFile)))
	must(t, os.Symlink(outside, filepath.Join(rec.Dir, FoundFile)))
	if got, ok, err := Read[string](rec, FoundFile); ok || err == nil {
		t.Errorf("read %q through a link, %v, want an error", got, err)
	}
}

// What is kept of a call is safe for whoever looks at it later, without abl.
func TestCallIsKeptSafe(t *testing.T) {
	r := newRig(t, nil)
	r.runner.Safe = hiding()
	r.engine.Scripts = map[string]sandboxtest.Script{"role": func(b sandbox.Box) sandbox.Exit {
		prints(b, "do print "+key+"\n"+key+evil+"\nused 7\n")
		must(t, os.WriteFile(sandboxtest.Host(b, helper.Err), []byte("err "+key[:8]+"\n"+key[8:]+evil), 0o644))
		r.engine.Print(b.Name, `{"exit":127,"error":"no `+key+`\u001b[2J\u202e"}`)
		return sandbox.Exit{Code: 127}
	}}
	o := r.run()
	if got, want := show(o), `failed 127 could not be started: no [secret …11]\u001b[2J\u202e, m-1 7`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := r.kinds(); !strings.HasPrefix(got, "call_start action:print [secret …11] ") {
		t.Errorf("events %s", got)
	}
	spotless(t, r.runner.Project.Root)
	last, err := os.ReadFile(r.runner.Project.LastLog("builder"))
	if err != nil || !strings.HasPrefix(string(last), "do print [secret …11]\n[secret …11]\\u001b]0;t") {
		t.Errorf("the last log is %q, %v", last, err)
	}
	if again := r.run(); show(again) != show(o) {
		t.Errorf("again: %s", show(again))
	}
}

// An abl that is killed between a safe output and the outcome leaves the next
// one the same to read, and the last log to repair.
func TestKeepingIsDoneAgain(t *testing.T) {
	r := newRig(t, says("do print "+key+evil+"\nused 7\nend", 0))
	r.runner.Safe = hiding()
	r.begin()
	_, err := r.engine.Wait(t.Context(), r.runner.box(r.job))
	must(t, err)
	must(t, cleanAll(r.runner.Safe, filepath.Dir(r.rec().Stdout()), filepath.Base(r.rec().Stdout())))
	if got := show(r.run()); got != "done 0, m-1 7" {
		t.Errorf("got %s", got)
	}
	spotless(t, r.runner.Project.Root)
}

func TestOutputThatCannotBeKept(t *testing.T) {
	r := newRig(t, says("end", 0))
	r.engine.Scripts["role"] = func(b sandbox.Box) sandbox.Exit {
		prints(b, "end")
		path := sandboxtest.Host(b, helper.Err)
		must(t, os.Remove(path))
		must(t, os.Symlink("/etc/hostname", path))
		return sandbox.Exit{}
	}
	if _, err := r.runner.Run(t.Context(), r.job); err == nil {
		t.Error("a link was kept")
	}
	if _, ended, err := r.rec().Outcome(); ended || err != nil {
		t.Errorf("the call has an outcome, %v", err)
	}
}

func TestAppIsKeptSafe(t *testing.T) {
	s := newStage(t, web, `{"event":"failed","detail":"said `+key+`\u001b[2J\nabl: passed"}`+"\n")
	s.app.Safe = hiding()
	up, err := s.app.Up(t.Context(), "k", "")
	if err != nil || up.Failed != `said [secret …11]\x1b[2J abl: passed` {
		t.Errorf("got %q, %v", up.Failed, err)
	}
	write(t, filepath.Join(s.app.dir("k"), "app.log"), "log "+key+evil)
	must(t, s.app.Down(t.Context(), "k"))
	spotless(t, s.app.Project.Root)
	if log, err := os.ReadFile(filepath.Join(s.app.dir("k"), "app.log")); err != nil || !strings.HasPrefix(string(log), "log [secret …11]") {
		t.Errorf("the log is %q, %v", log, err)
	}
	must(t, s.app.Down(t.Context(), "none"))
}

func TestRecordKeep(t *testing.T) {
	rec := Record{t.TempDir()}
	must(t, rec.Clean(hiding()))
	for _, name := range []string{"stdout", "stderr", "app/app.log", "app/events"} {
		write(t, filepath.Join(rec.Dir, name), name+key+evil)
	}
	must(t, rec.Clean(hiding()))
	spotless(t, rec.Dir)
}

// Names that agents chose come back from a record as they are, and stand in it
// as plain text.
func TestRecordsAreSafeToLookAt(t *testing.T) {
	rec := Record{t.TempDir()}
	want := Intent{Key: "k", Reports: map[string]int64{"a" + evil + "\u200d.md": 1}}
	must(t, rec.Write("intent.json", want))
	spotless(t, rec.Dir)
	got, ok, err := rec.Intent()
	if err != nil || !ok || len(got.Reports) != 1 || got.Reports["a"+evil+"\u200d.md"] != 1 {
		t.Errorf("got %v, %t, %v", got.Reports, ok, err)
	}
}
