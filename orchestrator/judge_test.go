package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/internal/failedspecs"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/call"
)

func TestDecide(t *testing.T) {
	fail := failedspecs.Parse([]byte(entry))
	half := failedspecs.Parse([]byte("SPEC: half\n"))
	sound := func(change func(*Evidence)) Evidence {
		e := Evidence{File: failedspecs.Result{Kind: failedspecs.Pass}, Class: outcome.Done, Report: "r.md"}
		change(&e)
		return e
	}
	for _, c := range []struct {
		name    string
		e       Evidence
		want    Verdict
		missing string // a part of the missing evidence
	}{
		{"nothing-failed", sound(func(*Evidence) {}), Pass, ""},
		{"nothing-known", Evidence{}, Unknown, "did not end properly"},
		{"an-entry", sound(func(e *Evidence) { e.File = fail }), Fail, ""},
		{"an-entry-of-a-call-that-died", sound(func(e *Evidence) { e.File, e.Class, e.Report = fail, outcome.Crashed, "" }), Fail, ""},
		{"half-an-entry", sound(func(e *Evidence) { e.File = half }), Unknown, "no complete entry"},
		{"no-report", sound(func(e *Evidence) { e.Report = "" }), Unknown, "run report"},
		{"a-link", sound(func(e *Evidence) { e.FileError = "is not a readable plain file" }), Unknown, "not a readable plain file"},
		{"changed-source", sound(func(e *Evidence) { e.Changed = []string{"server.js"} }), Unknown, "server.js"},
		{"the-app-did-not-start", Evidence{AppFailed: "exit code 1"}, Fail, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Decide(c.e)
			if f.Verdict != c.want || !strings.Contains(strings.Join(f.Missing, "\n"), c.missing) || (c.want == Unknown) != (len(f.Missing) > 0) || (c.want == Fail) != (len(f.Entries) > 0) {
				t.Errorf("got %+v, want %s", f, c.want)
			}
			if summary(f) == "" {
				t.Errorf("summary of %+v: got none, want one", f)
			}
		})
	}
	for _, class := range []outcome.Outcome{"", outcome.Failed, outcome.Crashed, outcome.OutOfMemory, outcome.Timeout, outcome.Flood, outcome.Interrupted, outcome.Lost, outcome.Unavailable, outcome.Refused} {
		if f := Decide(sound(func(e *Evidence) { e.Class = class })); f.Verdict != Unknown {
			t.Errorf("verdict after an end %q: got %s, want %s", class, f.Verdict, Unknown)
		}
	}
	if f := Decide(Evidence{AppFailed: "exit code 1\nSOURCE"}); f.Entries[0].Observed != "exit code 1" {
		t.Errorf("entries of a failed app: got %+v, want exit code 1 as observed", f.Entries)
	}
}

// A failed_specs.md that is not a regular file is never read and never a pass.
func TestHostileFailedSpecs(t *testing.T) {
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": good, "p1-verify-1.2": good})
	l := w.loop()
	calls := l.Calls.(*world)
	l.Calls = linking{calls, t.TempDir()}
	if _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.print(); !strings.Contains(got, "calls p1-build-1.1 p1-verify-1.1 p1-verify-1.2") {
		t.Errorf("end: got\n%s\nwant two calls of the Verifier", got)
	}
}

// A failed_specs.md that is too large is not a verdict, and the Verifier gets the reason.
func TestLargeFailedSpecs(t *testing.T) {
	large := strings.Repeat("SPEC: a → b\nINPUT: c\nOBSERVED: d\n", failedspecs.MaxBytes/20)
	w := newWorld(t, map[string]play{
		"p1-build-1.1": good, "p1-verify-1.1": {class: outcome.Done, report: true, failed: large}, "p1-verify-1.2": good,
	})
	if _, err := w.loop().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, _, err := roles.Read[Finding](roles.Record{Dir: w.project.Call("p1-verify-1.1")}, roles.FindingFile)
	const want = "failed_specs.md is larger than 256 KiB, which is more than abl reads: write fewer or shorter entries"
	if err != nil || f.Verdict != Unknown || !slices.Contains(f.Missing, want) {
		t.Errorf("got %s, %q, %v, want %q", f.Verdict, f.Missing, err, want)
	}
}

// abl copies no secrets or control characters from a Verifier's files into its own.
func TestFindingsAreSafe(t *testing.T) {
	const key, evil = "sesame-open-4711", "\x1b]0;t\a\u009b2J\u202e\U000e0041\u200b"
	cut := "" // in the middle of the key, wherever that is
	for n := range len(key) {
		cut += "\nSPEC: a → b\nINPUT: c\nOBSERVED: " + strings.Repeat("x", failedspecs.MaxField-n-5) + key + "\n"
	}
	leak := "SPEC: a → " + evil + key + "\nINPUT: " + key + "\nOBSERVED: c\n" + cut + "\nSPEC: half " + key + evil + "\n"
	w := newWorld(t, map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(leak)})
	l := w.loop()
	l.Max, l.Safe = 1, &redact.Sanitizer{}
	l.Safe.Hide(key)
	if _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	finding, err := os.ReadFile(filepath.Join(w.project.Call("p1-verify-1.1"), "finding.json"))
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, e := range w.events {
		said += e.Text
	}
	for what, text := range map[string]string{"finding.json": string(finding), "state.json": string(w.disk), "events": said} {
		t.Run(what, func(t *testing.T) {
			if strings.Contains(text, key[:5]) || strings.ContainsAny(text, evil[:1]+"\a\u009b\u202e\U000e0041\u200b") || !strings.Contains(text, "[secret …11]") {
				t.Errorf("got %q, want neither key nor control characters", text)
			}
		})
	}
}

// linking is a Caller whose first Verifier leaves a link to an empty file.
type linking struct {
	*world
	dir string
}

func (l linking) Run(ctx context.Context, j call.Job) (roles.Outcome, error) {
	o, err := l.world.Run(ctx, j)
	path := filepath.Join(l.project.Tests, failedspecs.FileName)
	switch j.Call.ID {
	case "p1-verify-1.1":
		target := filepath.Join(l.dir, "empty")
		if werr := os.WriteFile(target, nil, 0o644); werr != nil {
			return o, werr
		}
		return o, os.Symlink(target, path)
	case "p1-verify-1.2":
		os.Remove(path)
	}
	return o, err
}

func TestRows(t *testing.T) {
	n := int64(5)
	o := roles.Outcome{Key: "k", Role: "builder", Model: "m", Session: "s", Agent: "a", Class: outcome.Crashed, Duration: 7}
	none := Rows(2, 3, o)
	if len(none) != 1 || none[0].Source != ledger.Nobody || none[0].Model != "m" || none[0].Total != nil || none[0].CostUSD != "" || none[0].Outcome != "crashed" || *none[0].DurationMS != 7 {
		t.Errorf("rows without usage: got %+v, want one without counts for a crashed call", none)
	}
	o.Usage = []agent.Usage{{Model: "a", Count: usage.Count{Total: &n}}, {Model: "b"}}
	two := Rows(2, 3, o)
	if len(two) != 2 || two[0].Model != "a" || *two[0].Total != 5 || two[0].CostUSD != ledger.Unknown || two[1].CostUSD != "" || two[0].Source != ledger.CLI || two[1].Source != ledger.Nobody || two[0].Phase != "2" || two[0].Step != "3" || two[1].CallID != "k" {
		t.Errorf("rows of two models: got %+v, want 5 tokens from %s, and unknown from %s",
			two, ledger.CLI, ledger.Nobody)
	}
	o.Source, o.Usage = roles.CountedByGate, []agent.Usage{{Model: "a", Count: usage.Count{Total: &n}}, {Part: true}}
	two = Rows(2, 3, o)
	if len(two) != 2 || two[0].Source != ledger.Gateway || two[1].Source != ledger.Nobody || two[1].Model != "m" || two[1].CostUSD != ledger.Unknown {
		t.Errorf("rows of a partial count: got %+v, want one from %s and one from %s",
			two, ledger.Gateway, ledger.Nobody)
	}
}
