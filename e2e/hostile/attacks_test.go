package hostile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const attacksDoc = "attacks.md"

var (
	idWord   = regexp.MustCompile(`^[A-Z][0-9]{2}$`)
	idRange  = regexp.MustCompile(`^([A-Z])([0-9]{2})–[A-Z]([0-9]{2})$`)
	idQuoted = regexp.MustCompile(`"([A-Z][0-9]{2})(-[a-z0-9-]*)?"`)
	inTicks  = regexp.MustCompile("`([^`]+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// attacks.md lists exactly the attacks of this package, names only existing tests, and says where
// other attacks are tested or why they are not.
func TestAttacksAreListed(t *testing.T) {
	played, tests := inSuite(t)
	data, err := os.ReadFile(attacksDoc)
	if err != nil {
		t.Fatal(err)
	}
	here, rest, _ := strings.Cut(string(data), "\n## Tested elsewhere\n")
	elsewhere, not, ok := strings.Cut(rest, "\n## Not tested\n")
	if !ok {
		t.Fatalf("%s: got fewer than three parts, want three", attacksDoc)
	}
	listed := map[string]bool{}
	for _, row := range rows(here) {
		ids := idsOf(row[0])
		if len(ids) == 0 || len(row) != 4 || strings.TrimSpace(row[3]) == "" {
			t.Errorf("row of an attack: got %q, want four cells with ids and a control", row)
		}
		for _, id := range ids {
			if listed[id] {
				t.Errorf("rows of %s: got a second one, want one", id)
			}
			listed[id] = true
		}
	}
	for _, m := range inTicks.FindAllStringSubmatch(here, -1) {
		if strings.HasPrefix(m[1], "Test") && !tests[m[1]] {
			t.Errorf("tests of the page: got %s, want only tests that exist", m[1])
		}
	}
	if want, got := keys(played), keys(listed); !slices.Equal(want, got) {
		t.Errorf("attacks of the page: got %v\nwant those of the tests: %v", got, want)
	}
	for _, row := range append(rows(elsewhere), rows(not)...) {
		for _, id := range idsOf(row[0]) {
			if played[id] {
				t.Errorf("attack %s: got a test in this package, want none, as the page lists", id)
			}
		}
	}
	for _, row := range rows(elsewhere) {
		for _, m := range inTicks.FindAllStringSubmatch(row[1], -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Error(err)
			}
		}
	}
}

// inSuite returns the ids that the tests of this package name, without the suffixes that distinguish
// the cases of an attack, and the names of the tests.
func inSuite(t *testing.T) (ids, tests map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("test files: got %v, error %v, want 5 or more", files, err)
	}
	ids, tests = map[string]bool{}, map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range idQuoted.FindAllSubmatch(data, -1) {
			ids[string(m[1])] = true
		}
		for _, m := range testFunc.FindAllSubmatch(data, -1) {
			tests[string(m[1])] = true
		}
	}
	return ids, tests
}

// rows returns the rows of the tables in a text as cells, without the headings.
func rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| group |") || strings.HasPrefix(line, "| what |") {
			continue
		}
		all = append(all, strings.Split(strings.Trim(line, "| "), " | "))
	}
	return all
}

// idsOf returns the ids at the start of a cell, with ranges expanded.
func idsOf(cell string) (ids []string) {
	for _, word := range strings.Fields(cell) {
		if m := idRange.FindStringSubmatch(word); m != nil {
			var from, to int
			fmt.Sscan(strings.TrimPrefix(m[2], "0"), &from)
			fmt.Sscan(strings.TrimPrefix(m[3], "0"), &to)
			for n := from; n <= to; n++ {
				ids = append(ids, fmt.Sprintf("%s%02d", m[1], n))
			}
			continue
		}
		if !idWord.MatchString(word) {
			return ids
		}
		ids = append(ids, word)
	}
	return ids
}

func keys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// A test of this package names every script and app in testdata.
func TestEveryFileIsUsed(t *testing.T) {
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range sources {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	files, err := filepath.Glob("testdata/*/*.*")
	if err != nil || len(files) < 100 {
		t.Fatalf("got %d files, %v, want at least 100", len(files), err)
	}
	for _, file := range files {
		dir, name := filepath.Base(filepath.Dir(file)), filepath.Base(file)
		id := strings.TrimSuffix(name, filepath.Ext(name))
		if dir != "attacker" && !strings.Contains(text.String(), `"`+id+`"`) && !strings.Contains(text.String(), dir+"/"+name) {
			t.Errorf("%s: got no test that uses it, want one", file)
		}
	}
}
