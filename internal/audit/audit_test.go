package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/failedspecs"
	"abl/internal/state"
	"abl/internal/testing/audittest"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// full sets every field.
func full() Record {
	hash := strings.Repeat("0a", 32)
	file := File{Path: ".abl/logs/calls/p1-verify-3.1/boundary.json", SHA256: hash}
	proof := &Proof{File: file, Container: "b", At: at, Image: "sha256:" + hash, Checks: 9, Held: 8, Weak: "w", Unheard: true, Failed: "f"}
	finding := Finding{Is: "flaky", Why: "y", Test: "line 3: ok 3 - P1.C3", Runs: []string{"ok", "not ok"}, Entries: 1, Input: "i", Observed: "o", Under: []string{"empty 200"}, Witness: "GET /a → 200", Unread: true, Allowed: true, Unshown: "not reached"}
	return Record{
		Version: Version, Project: "0123456789ab", Phase: 1, Title: "T", Round: 2, Iteration: 1, Step: 3, Decided: at, Verdict: "fail", Status: "refuted",
		Kind: "command", Evidence: "required", Strength: "shown for 1 of 2 contracts", ByReplay: true, Missing: []string{"m"}, Notes: []string{"n"},
		Entries:   []failedspecs.Entry{{Spec: "s", Input: "i", Observed: "o", Line: 1, Contract: "P1.C1", Note: "n"}},
		Commits:   Commits{Source: "c", Tree: "e", Tests: "d", Tag: "phase1/passed"},
		Specs:     []Spec{{Phase: 1, Title: "T", File: ".abl/specs/phase1.md", SHA256: hash, Bytes: 7}},
		Contracts: []Contract{{Clause: Clause{ID: "P1.C1", Phase: 1, Line: 5, Says: "a → b", Absence: true}, Result: Fail, By: ByReplay, Finding: finding}},
		Earlier:   []Earlier{{Contract: "P1.C1", Suite: "phase1/passed", Finding: finding}},
		Replays: []Replay{{Name: "app-1", Call: "p1-verify-3.1", Against: "app", Commit: "c", Exit: 1, Late: true, Gone: "g", Failed: "f", MS: 12, Tests: 2, OK: 1,
			Output: &file, Boundary: proof, App: proof, Doubts: []string{"d"}}},
		Calls: []Call{{Key: "p1-verify-3.1", Role: "verifier", Attempt: 1, Agent: "a", Model: "m", Session: "s", Image: "i", Class: "done", Finish: "STOP", Reason: "r", Exit: 1,
			Started: at, Ended: at, Report: "r", Verdict: "fail", Boundary: proof, App: proof}},
	}
}

func schema(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../../docs/audit-record.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every field is in the schema and on the page, and the sample sets it, so that an undocumented field
// is found.
func TestSchemaAndPageAreComplete(t *testing.T) {
	data, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range audittest.Violations(schema(t), data) {
		t.Errorf("violation of the schema: got %s, want none", w)
	}
	page, err := os.ReadFile("../../docs/audit-record.md")
	if err != nil {
		t.Fatal(err)
	}
	set(t, string(page), reflect.ValueOf(full()))
}

// set checks that every field in v is set and that the page has its name.
func set(t *testing.T, page string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		set(t, page, v.Elem())
	case reflect.Slice:
		set(t, page, v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s of the sample: got the zero value, want another", v.Type(), f.Name)
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.Anonymous && !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/audit-record.md: got no description of %s.%s, want one", v.Type(), name)
			}
			set(t, page, v.Field(i))
		}
	}
}

// The schema must refuse invalid records.
func TestSchemaRefuses(t *testing.T) {
	data, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"a-verdict-of-another-word": {`"verdict":"fail","status"`, `"verdict":"maybe","status"`},
		"a-result-of-another-word":  {`"result":"fail"`, `"result":"probably"`},
		"a-field-more":              {`"round":2`, `"round":2,"rounds":3`},
		"a-field-less":              {`"round":2,`, ``},
		"a-number-as-text":          {`"round":2`, `"round":"2"`},
		"no-iteration":              {`"iteration":1`, `"iteration":-1`},
		"half-a-hash":               {`"sha256":"0a`, `"sha256":"`},
		"no-time":                   {`"decided":"2026-03-01T12:00:00Z"`, `"decided":"yesterday"`},
		"an-id-of-nothing":          {`"id":"P1.C1"`, `"id":"C1"`},
	} {
		t.Run(what, func(t *testing.T) {
			bad := bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
			if bytes.Equal(bad, data) || len(audittest.Violations(schema(t), bad)) == 0 {
				t.Errorf("%s: got changed %t and no violation of the schema, want true and one",
					what, !bytes.Equal(bad, data))
			}
		})
	}
}

func TestKeep(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	if steps, err := Steps(p, 1); err != nil || steps != nil {
		t.Errorf("steps without a record: got %v, error %v, want none", steps, err)
	}
	if _, ok, err := Last(p, 1); ok || err != nil {
		t.Errorf("last step without a record: got found %t, error %v, want none", ok, err)
	}
	older, newer := full(), full()
	newer.Step = 12
	for _, r := range []Record{newer, older, older} {
		if err := Save(p, r); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"step-4.json.bak": "", "step-04.json": "{}", "other": "x"} {
		if err := os.WriteFile(filepath.Join(Dir(p, 1), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if steps, err := Steps(p, 1); err != nil || !cmp.Equal(steps, []int{3, 12}) {
		t.Errorf("steps: got %v, error %v, want [3 12]", steps, err)
	}
	got, ok, err := Last(p, 1)
	if !ok || err != nil {
		t.Fatalf("last record: got found %t, error %v, want true and none", ok, err)
	}
	if diff := cmp.Diff(newer, got); diff != "" {
		t.Errorf("last record (-want +got)\n%s", diff)
	}
}

// FuzzDecode checks that a record is read completely or not at all, and written unchanged.
func FuzzDecode(f *testing.F) {
	good, err := json.Marshal(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"decided":"2026-03-01T12:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			if !reflect.DeepEqual(r, Record{}) {
				t.Fatalf("record after the error %v: got %+v, want an empty one", err, r)
			}
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		once, _ := json.Marshal(back)
		if !bytes.Equal(again, once) {
			t.Fatalf("record encoded again: got %s, want %s", once, again)
		}
	})
}

// A file that is not a record of abl is not read in part.
func TestDamagedRecord(t *testing.T) {
	p := state.NewProject(t.TempDir(), "src", "tests")
	if err := Save(p, full()); err != nil {
		t.Fatal(err)
	}
	path := Path(p, 1, 3)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "it is not an audit record"},
		{"cut-off", string(good[:len(good)/2]), "it is not an audit record"},
		{"newer", strings.Replace(string(good), `"version": 1`, `"version": 7`, 1), "version 7, but this abl supports version 1: update abl"},
		{"another-phases", strings.Replace(string(good), `"phase": 1`, `"phase": 2`, 1), "it belongs to phase 2, step-3"},
		{"a-wrong-type", strings.Replace(string(good), `"round": 2`, `"round": "2"`, 1), "it is not an audit record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(p, 1, 3); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ".abl/reports/phase1/step-3.json") {
				t.Errorf("damaged record: got error %v, want one with %q and the file", err, c.want)
			}
		})
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(p, 1, 3); err == nil {
		t.Error("record behind a link: got no error, want one")
	}
}
