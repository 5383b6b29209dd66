package state

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/redact"

	"github.com/google/go-cmp/cmp"
)

// full returns a state with every field set.
func full() *File {
	when := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	lease := json.RawMessage(`{"path":"src","uid":1000}`)
	return &File{
		Version: 1, Project: "0123456789ab", Root: "/home/me/project", Updated: when, Owners: &lease, Branch: "main", Start: "c8", Published: "c9",
		Git: map[string]map[string]string{"builder": {"config": "ab", "hooks/pre-commit": "cd+x"}},
		Phases: map[string]*Phase{
			"1": {Status: Passed, Approved: true},
			"2": {
				Status: Refuted, Round: 2, Iteration: 3, Step: 8, Attempt: 1, Tries: 1, Asked: true, Class: "done",
				Back: when, NeedsPerson: true, Grown: true, Outage: &Outage{Class: "away", Since: when, Tries: 2, UsedMS: 3000, WaitMS: 2000, Until: when}, Fallback: map[string]int{"builder": 1},
				Call: "p2-s8-verifier", VerifierOnly: true, Recheck: true, HeldTo: HeldTo{SpecSHA: "ab", SpecSize: 12, Settings: "ad", PassedSHA: "aa", PassedSize: 10},
				Started: when, Ended: when, SrcCommit: "c0", TestsCommit: "c1", Approved: false, ReportMissing: true, Note: "a note",
				Judged: Judged{
					AppPrinted: "Error", AppFailed: "exit code 1", Regressed: []failedspecs.Entry{{Spec: "a → b", Input: "a", Observed: "c"}}, LastVerdict: "fail", Stalled: "nothing moved",
					Why: []string{"no report"}, Repeated: 2, Failed: []failedspecs.Entry{{Spec: "a → <b>", Input: "c", Observed: "d\n\"e\"", Line: 4}},
				},
				History: []IterationRecord{{Round: 1, Iteration: 5, Step: 5, Verdict: "fail", Entries: 2,
					SrcCommit: "c2", TestsCommit: "c3", When: when, Call: "p2-verify-5.1", Tree: "ef", VerifierOnly: true}},
			},
			"10": {Status: Ready},
		},
	}
}

func path(t *testing.T, content string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSaveThenLoadIsTheSame(t *testing.T) {
	p := filepath.Join(t.TempDir(), "state.json")
	for _, f := range []*File{full(), New(t.TempDir())} {
		if err := Save(p, f); err != nil {
			t.Fatal(err)
		}
		got, err := Load(p)
		if err != nil {
			t.Fatal(err)
		}
		var compact json.RawMessage
		if got.Owners != nil {
			var v any
			if err := json.Unmarshal(*got.Owners, &v); err != nil {
				t.Fatal(err)
			}
			compact, _ = json.Marshal(v)
			got.Owners = &compact
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("loaded state (-want +got)\n%s", diff)
		}
	}
}

func TestSaveIsStableAndReadable(t *testing.T) {
	p := filepath.Join(t.TempDir(), "state.json")
	var before string
	for range 5 {
		if err := Save(p, full()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if before != "" && before != string(data) {
			t.Fatalf("the same state saved again: got\n%s\nwant\n%s", data, before)
		}
		before = string(data)
	}
	for _, want := range []string{"\n  \"project\": \"0123456789ab\"", "a → <b>", "\"when\": \"2026-11-21T10:00:00Z\""} {
		if !strings.Contains(before, want) {
			t.Errorf("saved state: got\n%s\nwant %q in it", before, want)
		}
	}
}

func TestSaveRejectsInvalidState(t *testing.T) {
	p := path(t, "old")
	f := full()
	f.Phases["2"].Status = "dancing"
	if err := Save(p, f); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("got %v, want an internal error", err)
	}
	if data, _ := os.ReadFile(p); string(data) != "old" {
		t.Errorf("state file: got %q, want %q", data, "old")
	}
}

func TestLoadAbsent(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "state.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestLoadRejectsDamagedFile(t *testing.T) {
	good, err := encode(full())
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("no %q in the sample", old)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	for _, c := range []struct{ name, content, want string }{
		{"empty", "", "it is empty"},
		{"white space", " \n", "it is empty"},
		{"zeros", strings.Repeat("\x00", 512), "line 1: invalid JSON"},
		{"garbage", "hello", "line 1: invalid JSON"},
		{"torn", string(good[:len(good)/2]), "the end is missing"},
		{"another program's", `{"name": "x", "version": "1.0.0"}`, `"version" has the wrong type: string`},
		{"no version", `{"phases": {}}`, "it has no valid version"},
		{"version 0", swap(`"version": 1`, `"version": 0`), "it has no valid version"},
		{"array", "[]", "wrong type"},
		{"null", "null", "it has no valid version"},
		{"null phases", swap(`"phases": {`, `"phases": null, "note": {`), "unknown field"},
		{"null phase", swap(`"10": {`, `"11": null, "10": {`), "phase 11: it is null"},
		{"unknown field", swap(`"project"`, `"colour": 1, "project"`), `abl did not write it: unknown field "colour"`},
		{"unknown field of a phase", swap(`"round"`, `"colour": 1, "round"`), `abl did not write it: unknown field "colour"`},
		{"wrong type", swap(`"round": 2`, `"round": "two"`), `has the wrong type: string`},
		{"unknown status", swap(`"refuted"`, `"dancing"`), `phase 2: status "dancing" is unknown`},
		{"negative", swap(`"step": 8`, `"step": -8`), "phase 2: step is negative"},
		{"negative fallback", swap(`"builder": 1`, `"builder": -1`), "phase 2: fallback.builder is negative"},
		{"negative tries of an outage", swap(`"tries": 2`, `"tries": -2`), "phase 2: outage.tries is negative"},
		{"negative time of an outage", swap(`"used_ms": 3000`, `"used_ms": -3000`), "phase 2: outage.used_ms is negative"},
		{"negative round in the history", swap(`"round": 1`, `"round": -1`), "phase 2: history[0].round is negative"},
		{"huge round in the history", swap(`"round": 1`, `"round": 99999999999`),
			"phase 2: history[0].round is 99999999999, want at most 100000"},
		{"huge iteration in the history", swap(`"iteration": 5`, `"iteration": 99999999999`), "phase 2: history[0].iteration is 99999999999"},
		{"huge step in the history", swap(`"step": 5`, `"step": 99999999999`), "phase 2: history[0].step is 99999999999"},
		{"huge entries in the history", swap(`"entries": 2`, `"entries": 99999999999`), "phase 2: history[0].entries is 99999999999"},
		{"call outside", swap(`"p2-s8-verifier"`, `"../../x"`), `phase 2: "../../x" is not a valid call id`},
		{"call outside in the history", swap(`"p2-verify-5.1"`, `".."`), `phase 2: ".." is not a valid call id`},
		{"phase 0", swap(`"10": {`, `"0": {`), `"0" is not a phase number`},
		{"phase 01", swap(`"10": {`, `"01": {`), `"01" is not a phase number`},
		{"project", swap(`0123456789ab`, `../../../../`), `invalid project id "../../../../"`},
		{"root", swap(`/home/me`, `home/me`), `root "home/me/project"`},
		{"trailing data", string(good) + "{}", "invalid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := path(t, c.content)
			_, err := Load(p)
			var damaged *Damaged
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), p) {
				t.Errorf("got %v, want a *Damaged with %q and %q", err, c.want, p)
			}
			if data, _ := os.ReadFile(p); string(data) != c.content {
				t.Errorf("state file after Load: got %.500q, want %.500q", data, c.content)
			}
		})
	}
}

func TestEveryPrefixIsDamaged(t *testing.T) {
	good, err := encode(full())
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(good) - 2 { // the last bytes are "}\n"
		if f, err := Decode(good[:n]); err == nil {
			t.Fatalf("first %d bytes of a state: got %+v, want an error", n, f)
		}
	}
}

func TestLoadRejectsOtherThanRegularFiles(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := Save(real, full()); err != nil {
		t.Fatal(err)
	}
	link, fifo, sub := filepath.Join(dir, "link"), filepath.Join(dir, "fifo"), filepath.Join(dir, "dir")
	if err := errors.Join(os.Symlink(real, link), syscall.Mkfifo(fifo, 0o600), os.Mkdir(sub, 0o700)); err != nil {
		t.Fatal(err)
	}
	large := path(t, strings.Repeat(" ", MaxBytes+1))
	for _, p := range []string{link, fifo, sub, large} {
		var damaged *Damaged
		if _, err := Load(p); !errors.As(err, &damaged) {
			t.Errorf("%s: got %v, want a *Damaged", p, err)
		}
	}
}

func TestLoadRejectsNewerVersion(t *testing.T) {
	p := path(t, `{"version": 7, "what": "later"}`)
	_, err := Load(p)
	var damaged *Damaged
	want := "it has version 7, but this abl supports version 1: update abl"
	if !errors.As(err, &damaged) || damaged.What != want || damaged.Path != p {
		t.Errorf("got %#v, want a *Damaged with %q", err, want)
	}
}

func TestNew(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	a, b := New(link), New(dir)
	if a.Project == b.Project {
		t.Errorf("ids of two projects: got %q for both, want two", a.Project)
	}
	if a.Root != b.Root || check(a) != nil {
		t.Errorf("roots through a link and without: got %q and %q, error %v, want equal ones and no error",
			a.Root, b.Root, check(a))
	}
}

func FuzzDecode(f *testing.F) {
	good, err := encode(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version": 2}`))
	f.Add([]byte(`{"version":1,"project":"0123456789ab","root":"/\u009b\u202e","phases":{"1":{"status":"ready","note":"\u001b[2J\u200d"}}}`))
	f.Add([]byte(`{"version":1,"project":"0123456789ab","root":"/","phases":{"1":{"status":"ready"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Decode(data)
		if err != nil {
			return
		}
		again, err := encode(got)
		if err != nil {
			t.Fatalf("loaded state saved again: got error %v, want none", err)
		}
		if strings.ContainsFunc(string(again), func(r rune) bool { return r != '\n' && !redact.Plain(r) }) {
			t.Errorf("saved state: got %q, want only plain characters", again)
		}
		if twice, err := Decode(again); err != nil || twice.Project != got.Project || len(twice.Phases) != len(got.Phases) {
			t.Errorf("state saved and loaded: got %+v, error %v, want %+v", twice, err, got)
		}
	})
}
