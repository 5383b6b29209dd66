package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/hostfs"
)

// keepIDs reads the specs of a directory and keeps the ids of phases 1 to n.
func keepIDs(dir string, n int) (Set, error) {
	s, _ := LoadDir(dir)
	return s, s.Keep(n)
}

// save writes one spec and returns the ids that Keep assigns.
func save(t *testing.T, dir string, n int, lines ...string) string {
	t.Helper()
	text := fmt.Sprintf("# Phase %d: x\n\n## Context\n\nWhy.\n\n## Contracts\n\n%s\n", n, strings.Join(lines, "\n"))
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("phase%d.md", n)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := keepIDs(dir, n)
	if err != nil {
		t.Fatal(err)
	}
	return idsOf(s, n)
}

// idsOf returns the numbers of a phase's contracts in the order of the text.
func idsOf(s Set, n int) string {
	spec, _ := s.Phase(n)
	var ids []string
	for _, c := range spec.Contracts {
		ids = append(ids, strings.TrimPrefix(c.ID, fmt.Sprintf("P%d.", n)))
	}
	return strings.Join(ids, " ")
}

// Each case is one spec and its successive versions.
func TestIDsStay(t *testing.T) {
	type step struct{ spec, want string }
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"an edit elsewhere", []step{{"a → 1|b → 2|c → 3", "C1 C2 C3"}, {"new → 0|a → 1|b → 2|other → 9|c → 3", "C4 C1 C2 C5 C3"}}},
		{"another order", []step{{"a → 1|b → 2|c → 3", "C1 C2 C3"}, {"c → 3|a → 1|b → 2", "C3 C1 C2"}}},
		{"taken out, and never given again", []step{{"a → 1|b → 2|c → 3", "C1 C2 C3"}, {"a → 1|b → 2", "C1 C2"}, {"a → 1|b → 2|z → 26", "C1 C2 C4"}, {"z → 26", "C4"}, {"z → 26|y → 25", "C4 C5"}}},
		{"taken out and put back", []step{{"a → 1|b → 2", "C1 C2"}, {"b → 2", "C2"}, {"x → 24|b → 2|a → 1", "C3 C2 C1"}}},
		{"another result", []step{{"GET /a → 200|GET /b → 200", "C1 C2"}, {"GET /a → 404|GET /b → 200", "C1 C2"}}},
		{"another action is another contract", []step{
			{`POST /links {"url": U} → 201|GET /links → 200 with a list`, "C1 C2"},
			{`GET /links → 200 with a list of all links|POST /links {"url": U} with a new address → 201 {"code": C}`, "C2 C3"}}},
		{"the mark of an absence", []step{{"connect to port 25 → refused|b → 2", "C1 C2"}, {"b → 2|connect to port 25 → refused (absence)", "C2 C1"}}},
		{"another contract in its place", []step{{"GET /users → 200|GET / → 200", "C1 C2"}, {"GET /items → 200|GET / → 200", "C3 C2"}}},
		{"its opposite in its place", []step{
			{"GET /C with a known code C → 302 with header Location: U", "C1"}, {"GET /C with an unknown code C → 404 {\"error\": E}", "C2"}}},
		{"another flag of a tool", []step{{"run tool --version → it prints 1.0", "C1"}, {"run tool --help → it prints how to use it", "C2"}}},
		{"the same words twice", []step{{"a → 1|a → 1", "C1 C2"}, {"a → 1|b → 2|a → 1", "C1 C3 C2"}, {"b → 2|a → 1", "C3 C1"}}},
		{"written ids", []step{{"C7: a → 1|b → 2", "C7 C1"}, {"b → 2|z → 3|a → 1", "C1 C8 C7"}, {"b → 2|C8: a → 1|z → 3", "C1 C8 C9"}}},
		{"many words", []step{
			{strings.Repeat("word ", 100) + "→ 1|" + strings.Repeat("word ", 100) + "more → 1", "C1 C2"},
			{strings.Repeat("word ", 100) + "more → 1|" + strings.Repeat("word ", 100) + "→ 1", "C2 C1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, s := range c.steps {
				if got := save(t, dir, 1, strings.Split(s.spec, "|")...); got != s.want {
					t.Errorf("step %d: got %s, want %s", i+1, got, s.want)
				}
			}
		})
	}
}

// Older versions of abl wrote contracts without the headings above them.
func TestIDsOfOldSpecs(t *testing.T) {
	dir := t.TempDir()
	old := idsHeader + "P1.C4 = GET /users → 200\nP1.C7 = GET /users → 404\nP1.C9 - gone → 1\n"
	if err := os.WriteFile(filepath.Join(dir, IDFile), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := save(t, dir, 1, "- GET /new → 200", "### Users that are gone", "- GET /users → 404", "### Users", "- GET /users → 200"); got != "C10 C7 C4" {
		t.Errorf("ids: got %s, want C10 C7 C4", got)
	}
}

// The text above a contract is part of its key, cut at the same length as ever.
func TestIDsBelowALongText(t *testing.T) {
	dir := t.TempDir()
	heading := strings.TrimSpace(strings.Repeat("word ", 100))
	old := idsHeader + "P1.C4 = " + strings.TrimSpace(heading[:300]) + " … cefc08433940\nP1.C7 = " + strings.TrimSpace(heading[:300]) + " … 860fb3620391\n"
	if err := os.WriteFile(filepath.Join(dir, IDFile), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := save(t, dir, 1, "### "+heading, "- GET /b → 200", "- GET /a → 200"); got != "C7 C4" {
		t.Errorf("ids: got %s, want C7 C4", got)
	}
}

// Keep saves the ids of a phase when it runs. The ids of later phases follow their text.
func TestIDsOfALaterPhase(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1, "a → 1")
	later := "# Phase 2: x\n## Contracts\n- b → 2\n- c → 3\n"
	if err := os.WriteFile(filepath.Join(dir, "phase2.md"), []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := keepIDs(dir, 1)
	data, _ := os.ReadFile(filepath.Join(dir, IDFile))
	if want := idsHeader + "P1.C1 = a → 1\n"; err != nil || string(data) != want || idsOf(s, 2) != "C1 C2" {
		t.Errorf("ids of phase 2: got %s, error %v, file %q, want C1 C2, file %q", idsOf(s, 2), err, data, want)
	}
}

// The phase is part of an id. Under another number all ids are new, and the old ones stay in the
// file in case the old number returns.
func TestIDsOfARenamedPhase(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1, "a → 1")
	save(t, dir, 2, "b → 2", "c → 3")
	if got := save(t, dir, 2, "c → 3"); got != "C2" {
		t.Errorf("ids without the first contract: got %s, want C2", got)
	}
	if err := os.Remove(filepath.Join(dir, "phase2.md")); err != nil {
		t.Fatal(err)
	}
	if got := save(t, dir, 1, "a → 1", "c → 3"); got != "C1 C2" {
		t.Errorf("ids of phase 1: got %s, want C1 C2", got)
	}
	if got := save(t, dir, 2, "new → 9", "c → 3", "b → 2"); got != "C3 C2 C1" {
		t.Errorf("ids of the returned phase 2: got %s, want C3 C2 C1", got)
	}
}

// A spec that is invalid or incomplete for a while loses no ids.
func TestIDsOfABrokenSpec(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1, "a → 1", "b → 2")
	if err := os.WriteFile(filepath.Join(dir, "phase1.md"), []byte("# Phase 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keepIDs(dir, MaxPhase); err != nil {
		t.Fatal(err)
	}
	if got := save(t, dir, 1, "b → 2", "c → 3", "a → 1"); got != "C2 C3 C1" {
		t.Errorf("ids of the fixed spec: got %s, want C2 C3 C1", got)
	}
}

func TestKeepWritesOnlyChanges(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1, "- GET /a → 200 (absence)", "- b → 2")
	path := filepath.Join(dir, IDFile)
	const want = idsHeader + "P1.C1 = GET /a → 200\nP1.C2 = b → 2\n"
	before, err := os.Stat(path)
	if data, _ := os.ReadFile(path); err != nil || string(data) != want {
		t.Fatalf("id file: got %q, error %v, want %q", data, err, want)
	}
	if _, err := keepIDs(dir, MaxPhase); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("id file without a change: got another file, error %v, want the same", err)
	}
	save(t, dir, 1, "- b → 2")
	if data, _ := os.ReadFile(path); string(data) != idsHeader+"P1.C1 - GET /a → 200\nP1.C2 = b → 2\n" {
		t.Errorf("got %q, want the two ids", data)
	}
}

// LoadDir returns the same ids and writes nothing: in a container, the specs are read-only.
func TestIDsWithoutWriting(t *testing.T) {
	dir := write(t, "phase1.md")
	s, problems := LoadDir(dir)
	if len(problems) > 0 || idsOf(s, 1) != "C1" {
		t.Errorf("ids: got %v, problems %v, want C1 and no problems", idsOf(s, 1), problems)
	}
	if names, _ := hostfs.Names(dir, ".", 10); !slices.Equal(names, []string{"phase1.md"}) {
		t.Errorf("files: got %v, want only phase1.md", names)
	}
	save(t, dir, 1, "b → 2", "c → 3")
	save(t, dir, 1, "c → 3", "b → 2")
	if s, _ := LoadDir(dir); idsOf(s, 1) != "C2 C1" {
		t.Errorf("ids in another order: got %s, want C2 C1", idsOf(s, 1))
	}
}

func TestIDFileIsLink(t *testing.T) {
	dir := write(t, "phase1.md")
	if err := os.Mkdir(filepath.Join(dir, IDFile+".d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(IDFile+".d", filepath.Join(dir, IDFile)); err != nil {
		t.Fatal(err)
	}
	s, err := keepIDs(dir, MaxPhase)
	problems := s.Problems()
	if err != nil || len(s.Check(1)) != 1 || s.Check(1)[0].Code != "ids" || idsOf(s, 1) != "C1" {
		t.Errorf("ids with a link: got %s, problems %v, error %v, want C1 and one problem with the ids",
			idsOf(s, 1), problems, err)
	}
	if _, err := keepIDs(filepath.Join(dir, "absent"), MaxPhase); err != nil {
		t.Errorf("keepIDs without a directory: got %v, want no error", err)
	}
}

func TestIDFileDamaged(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"prose", "# x\nhello\n", `contract-ids.txt:2: "hello" is not a valid line, want one such as "P1.C3 = GET / → 200"`},
		{"cut off", idsHeader + "P1.C1 = a → b\nP1.C", `:4: "P1.C" is not a valid line`},
		{"no number", "P1.C0 = a → b\n", `:1: "P1.C0 = a → b" is not a valid line`},
		{"huge number", "P1.C99999999999 = a → b\n", `:1: `},
		{"no text", "P1.C1 = \n", `:1: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, "phase1.md", "phase2.md")
			if err := os.WriteFile(filepath.Join(dir, IDFile), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := keepIDs(dir, MaxPhase)
			if stops := s.Check(2); err != nil || len(stops) != 1 || !strings.Contains(stops[0].String(), c.want) || stops[0].Hint == "" {
				t.Errorf("problems: got %v, error %v, want one with %q and a hint", stops, err, c.want)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, IDFile)); string(data) != c.text {
				t.Errorf("id file: got %q, want %q", data, c.text)
			}
		})
	}
}

// Two users gave the same id to different contracts, and git merged the files with or without
// conflict markers. The first line keeps the id, and both problems are reported.
func TestIDFileAfterAMerge(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"both lines", "P1.C1 = a → 1\nP1.C2 = mine → 2\nP1.C2 = yours → 3\n"},
		{"marks", "P1.C1 = a → 1\n<<<<<<< HEAD\nP1.C2 = mine → 2\n=======\nP1.C2 = yours → 3\n>>>>>>> theirs\n"},
		{"marks of three", "P1.C1 = a → 1\r\n<<<<<<< HEAD\r\nP1.C2 = mine → 2\r\n||||||| base\r\n=======\r\nP1.C2 = yours → 3\r\n>>>>>>> theirs\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, IDFile), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "phase1.md"), []byte("# Phase 1: x\na → 1\nyours → 3\nmine → 2\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := keepIDs(dir, MaxPhase)
			problems := s.Problems()
			if err != nil || idsOf(s, 1) != "C1 C3 C2" || len(problems) == 0 || problems[0].Code != "ids-merged" || problems[0].Stops() {
				t.Errorf("ids: got %s, problems %v, error %v, want C1 C3 C2 and a warning", idsOf(s, 1), problems, err)
			}
			again, err := keepIDs(dir, MaxPhase)
			problems = again.Problems()
			if err != nil || idsOf(again, 1) != "C1 C3 C2" || len(problems) > 0 {
				t.Errorf("ids again: got %s, problems %v, error %v, want C1 C3 C2 and no problems",
					idsOf(again, 1), problems, err)
			}
		})
	}
}

// Whatever ids are known, each contract gets a unique one, the file round-trips, and a second run
// changes nothing.
func FuzzIDs(f *testing.F) {
	f.Add("P1.C1 = a → 1\nP1.C2 - b → 2\n", "a → 1\nb → 2\nc → 3\n")
	f.Add("P1.C9 = GET /a → 200\n<<<<<<< x\nP1.C9 = GET /b → 200\n", "GET /b → 200\nC9: GET /a with a token → 200\n")
	f.Fuzz(func(t *testing.T, known, contracts string) {
		was, problems := parseIDs([]byte(known))
		if len(problems) > 0 {
			return
		}
		was = slices.DeleteFunc(was, func(e entry) bool { return e.phase != 1 })
		s, _ := Parse("phase1.md", []byte("# Phase 1: x\n"+contracts), 1)
		if len(s.Contracts) > 100 || len(was) > 100 {
			return
		}
		all, _ := assign(1, s.Contracts, was)
		now := renderIDs(all)
		law(t, s)
		for _, c := range s.Contracts {
			for _, e := range was {
				if idOf(e.phase, e.number) == c.ID && e.gone && e.text != idKey(c) && !c.Written {
					t.Errorf("contract with %s: got %q, want only %q", c.ID, idKey(c), e.text)
				}
			}
		}
		back, problems := parseIDs([]byte(now))
		if len(problems) > 0 {
			t.Fatalf("problems of the id file: got %v, want none in\n%s", problems, now)
		}
		if diff := cmp.Diff(now, renderIDs(back)); diff != "" {
			t.Errorf("id file read back (-want +got)\n%s", diff)
		}
		before := idList(s)
		assign(1, s.Contracts, back)
		if diff := cmp.Diff(before, idList(s)); diff != "" {
			t.Errorf("ids again (-want +got)\n%s", diff)
		}
	})
}

func idList(s Spec) (ids []string) {
	for _, c := range s.Contracts {
		ids = append(ids, c.ID)
	}
	return ids
}

// A loss in an earlier phase is reported until that phase runs again.
func TestLostContracts(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1, "- a → 1", "- b → 2")
	save(t, dir, 2, "- c → 3")
	path := filepath.Join(dir, "phase1.md")
	if err := os.WriteFile(path, []byte("# Phase 1: x\n## Context\nx\n## Contracts\n- a → 1\n\n| b | 2 |\n|---|---|\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const lost = "phase 1 lost 1 of its contracts; the first one is P1.C2: \"b → 2\""
	for i, c := range []struct {
		runs     int
		problems string
	}{{2, lost}, {2, lost}, {1, lost}, {2, ""}} {
		s, err := keepIDs(dir, c.runs)
		problems := ""
		for _, p := range s.Lint() {
			if p.Code == "lost" && p.File == path && p.Phase == 1 {
				problems += p.Text
			}
		}
		if err != nil || problems != c.problems {
			t.Errorf("step %d: got %q, error %v, want %q", i, problems, err, c.problems)
		}
	}
}
