package roles

import (
	"os"
	"path/filepath"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/rolestest"
)

// abl replaces a link in a record, which a repository may contain, and never writes through it.
func TestRecordsFollowNoLink(t *testing.T) {
	rec, outside := Record{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "outside")
	rolestest.Must(t, os.WriteFile(outside, []byte("kept"), 0o600))
	for _, at := range []string{"note", "note.new"} {
		rolestest.Must(t, os.Symlink(outside, filepath.Join(rec.Dir, at)))
	}
	rolestest.Must(t, rec.Write("note", "second"))
	if got, err := os.ReadFile(outside); string(got) != "kept" || err != nil {
		t.Errorf("file behind the link: got %q, error %v, want kept", got, err)
	}
	rolestest.Must(t, rec.Write(FoundFile, "first"))
	rolestest.Must(t, os.Remove(filepath.Join(rec.Dir, FoundFile)))
	rolestest.Must(t, os.Symlink(outside, filepath.Join(rec.Dir, FoundFile)))
	if got, ok, err := Read[string](rec, FoundFile); ok || err == nil {
		t.Errorf("read through a link: got %q, error %v, want an error", got, err)
	}
}

func TestRecordKeep(t *testing.T) {
	rec := Record{Dir: t.TempDir()}
	rolestest.Must(t, rec.Clean(rolestest.Hiding()))
	for _, name := range []string{"stdout", "stderr", "app/app.log", "app/events"} {
		rolestest.Write(t, filepath.Join(rec.Dir, name), name+rolestest.Key+rolestest.Evil)
	}
	rolestest.Must(t, rec.Clean(rolestest.Hiding()))
	rolestest.Spotless(t, rec.Dir)
}

// A record contains the names that agents chose as plain text and returns them unchanged.
func TestRecordsAreSafeToLookAt(t *testing.T) {
	rec := Record{Dir: t.TempDir()}
	want := Intent{Key: "k", Reports: map[string]int64{"a" + rolestest.Evil + "\u200d.md": 1}}
	rolestest.Must(t, rec.Write("intent.json", want))
	rolestest.Spotless(t, rec.Dir)
	got, ok, err := rec.Intent()
	if err != nil || !ok || len(got.Reports) != 1 || got.Reports["a"+rolestest.Evil+"\u200d.md"] != 1 {
		t.Errorf("reports of the record: got %v, found %t, error %v, want %v", got.Reports, ok, err, want.Reports)
	}
}

func TestLastStep(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	if n, err := LastStep(p, 1); err != nil || n != 0 {
		t.Errorf("last step without calls: got %d, error %v, want 0", n, err)
	}
	for _, name := range []string{"p1-build-3.1", "p1-verify-12.2", "p2-build-40.1", "p11-build-50.1", ".empty", "shell-builder", "p1-build-x", "p1-other-90.1"} {
		rolestest.Must(t, os.MkdirAll(p.Call(name), 0o755))
	}
	if n, err := LastStep(p, 1); err != nil || n != 12 {
		t.Errorf("got %d, %v, want 12", n, err)
	}
}

func TestTornRecordIsNoOutcome(t *testing.T) {
	rec := Record{Dir: t.TempDir()}
	rolestest.Write(t, filepath.Join(rec.Dir, "outcome.json"), `{"class":"done"`)
	if _, ok, err := rec.Outcome(); ok || err == nil {
		t.Errorf("outcome of a torn record: got found %t, error %v, want an error", ok, err)
	}
}
