package look

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/recordtest"
)

// specsOf reads specs with these contracts, phase 1 first.
func specsOf(t *testing.T, contracts ...string) spec.Set {
	t.Helper()
	dir := t.TempDir()
	for i, text := range contracts {
		text = fmt.Sprintf("# Phase %d: T\n\n## Contracts\n\n%s\n", i+1, text)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("phase%d.md", i+1)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, _ := spec.LoadDir(dir)
	return set
}

// Results that a record does not contain are shown as missing.
func TestLastResults(t *testing.T) {
	old := specsOf(t, "a → 1\nb → 2", "c → 3")
	grown := specsOf(t, "a → 1\nb → 2\nd → 4", "c → 3")
	edited := specsOf(t, "a → 1\nb → 9", "c → 3")
	both := recordtest.RecordOn(old, 2, "pass pass pass")
	refuted := recordtest.RecordOn(old, 2, "untried fail flaky")
	refuted.Entries = []failedspecs.Entry{{Spec: "b → 2", Contract: "P1.C2"}, {Spec: "the moon → round"}}
	for _, c := range []struct {
		name string
		set  spec.Set
		last map[int]audit.Record
		want string
	}{
		{"never-run", old, nil, "1: - - 2: - - -"},
		{"both-passed", old, map[int]audit.Record{1: recordtest.RecordOn(old, 1, "pass weak"), 2: both}, "1: pass weak 2: pass pass pass"},
		{"the-Verifiers-word-alone", old, map[int]audit.Record{1: recordtest.RecordOn(old, 1, "pass? fail?")}, "1: pass? FAIL? 2: - - -"},
		{"the-first-grew-since", grown, map[int]audit.Record{1: recordtest.RecordOn(old, 1, "pass pass"), 2: both}, "1: pass pass - 2: pass pass - pass"},
		{"the-first-was-edited-since", edited, map[int]audit.Record{1: recordtest.RecordOn(old, 1, "pass pass"), 2: both}, "1: - - 2: - - pass"},
		{"refuted-in-the-second", old, map[int]audit.Record{1: recordtest.RecordOn(old, 1, "pass pass"), 2: refuted}, "1: pass pass 2: untried FAIL flaky and the moon → round"},
		{"not-shown", old, map[int]audit.Record{1: recordtest.RecordOn(old, 1, "vacuous missing")}, "1: vacuous missing 2: - - -"},
		{"an-entry-of-a-contract-that-is-gone", edited, map[int]audit.Record{2: refuted}, "1: - - 2: - - flaky and b → 2 the moon → round"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := matrixOf(&state.File{}, c.set, c.last)
			var words []string
			for n := 1; n <= 2; n++ {
				words = append(words, fmt.Sprintf("%d:", n))
				for _, contract := range m.Contracts {
					for _, r := range contract.Results {
						if r.Phase == n {
							words = append(words, cell(r))
						}
					}
				}
				and := "and"
				for _, o := range m.Others {
					if o.Phase == n {
						words, and = append(words, strings.TrimSpace(and+" "+o.Says)), ""
					}
				}
			}
			if got := strings.Join(words, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
