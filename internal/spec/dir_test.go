package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write creates a directory with valid specs under the given names, and with other files.
func write(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		var n int
		fmt.Sscanf(strings.ToLower(name), "phase%d", &n)
		text := fmt.Sprintf("# Phase %d: x\na → b\n", n)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// listed returns problems as lines, with names relative to dir and "!" for fatal ones.
func listed(dir string, problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		mark := ""
		if p.Fatal {
			mark = "! "
		}
		p.File = strings.TrimPrefix(strings.TrimPrefix(p.File, dir), "/")
		fmt.Fprintf(&b, "%s%d %s\n", mark, p.Phase, p)
	}
	return b.String()
}

func TestLoadDir(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   []string
		numbers []int
		want    string
	}{
		{"in order", []string{"phase10.md", "phase2.md", "phase1.md", "phase3.md", "phase4.md", "phase5.md", "phase6.md",
			"phase7.md", "phase8.md", "phase9.md"}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, ""},
		{"a gap", []string{"phase1.md", "phase2.md", "phase4.md"}, []int{1, 2, 4},
			"! 3 : phase3.md is missing, but phase4.md exists\n"},
		{"a wide gap", []string{"phase1.md", "phase2.md", "phase10.md"}, []int{1, 2, 10},
			"! 3 : phase3.md is missing, but phase10.md exists\n"},
		{"not from 1", []string{"phase2.md"}, []int{2}, "! 1 : phase1.md is missing, but phase2.md exists\n"},
		{"other files", []string{"phase1.md", "README.md", ".ids"}, []int{1},
			"0 README.md: this file is not a spec and is ignored\n"},
		{"leading zero", []string{"phase1.md", "phase01.md"}, []int{1},
			"! 1 phase01.md: the name must be phaseN.md in lower case, with N from 1 to 9999 without leading zeros\n"},
		{"capitals", []string{"phase1.md", "Phase2.MD"}, []int{1},
			"! 2 Phase2.MD: the name must be phaseN.md in lower case, with N from 1 to 9999 without leading zeros\n"},
		{"zero", []string{"phase0.md", "phase1.md"}, []int{1},
			"! 0 phase0.md: the name must be phaseN.md in lower case, with N from 1 to 9999 without leading zeros\n"},
		{"huge", []string{"phase1.md", "phase99999999999999999999.md"}, []int{1},
			"! 0 phase99999999999999999999.md: the name must be phaseN.md in lower case, with N from 1 to 9999 without leading zeros\n"},
		{"none", nil, nil, "! 0 : there is no spec\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, c.files...)
			set, problems := LoadDir(dir)
			if diff := cmp.Diff(c.want, listed(dir, problems)); diff != "" {
				t.Errorf("problems (-want +got)\n%s", diff)
			}
			if !slices.Equal(set.Numbers(), c.numbers) {
				t.Errorf("numbers: got %v, want %v", set.Numbers(), c.numbers)
			}
		})
	}
}

func TestLoadDirFollowsNoLinks(t *testing.T) {
	dir := write(t, "phase1.md")
	if err := os.Symlink("phase1.md", filepath.Join(dir, "phase2.md")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "phase3.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "phase4.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	set, problems := LoadDir(dir)
	if len(set.UpTo(9)) != 1 || len(set.Check(1)) != 0 {
		t.Errorf("specs: got %v, problems of phase 1 %v, want 1 spec and no problems", set.UpTo(9), set.Check(1))
	}
	for n, kind := range map[int]string{2: "link", 3: "FIFO", 4: "directory"} {
		stops := set.Check(n)
		if len(stops) == 0 || !strings.Contains(stops[len(stops)-1].Text, kind) {
			t.Errorf("phase %d: got %v, want one that says %q", n, stops, kind)
		}
	}
	if len(problems) != 3 {
		t.Errorf("problems: got %v, want 3", problems)
	}

	link := filepath.Join(t.TempDir(), "specs")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	const noFolder = "it is a link, or not a directory"
	for bad, want := range map[string]string{
		link:                            noFolder,
		filepath.Join(dir, "phase1.md"): noFolder,
		filepath.Join(dir, "absent"):    "the directory does not exist",
	} {
		set, _ := LoadDir(bad)
		if stops := set.Check(1); len(stops) != 1 || stops[0].Text != want {
			t.Errorf("%s: got %v, want %q", bad, stops, want)
		}
	}
}

func TestCheckReportsEarlierProblems(t *testing.T) {
	dir := write(t, "phase1.md", "phase2.md", "phase3.md", "phase5.md")
	if err := os.WriteFile(filepath.Join(dir, "phase3.md"), []byte("# Phase 9: x\na → b"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, _ := LoadDir(dir)
	for n, want := range map[int]string{
		-1: "! -1 : -1 is not a phase: they are numbered from 1 to 9999\n",
		0:  "! 0 : 0 is not a phase: they are numbered from 1 to 9999\n",
		1:  "",
		2:  "",
		3:  "! 3 phase3.md:1: the first line has phase number 9, but the file name has 3\n",
		5: "! 3 phase3.md:1: the first line has phase number 9, but the file name has 3\n" +
			"! 4 : phase4.md is missing, but phase5.md exists\n",
	} {
		if diff := cmp.Diff(want, listed(dir, set.Check(n))); diff != "" {
			t.Errorf("phase %d (-want +got)\n%s", n, diff)
		}
	}
	if _, ok := set.Phase(3); ok {
		t.Error("phase 3: got a broken spec, want none")
	}
	if s, ok := set.Phase(2); !ok || s.Number != 2 {
		t.Errorf("phase 2: got %v, found %t, want its spec", s, ok)
	}

	whole, _ := LoadDir(write(t, "phase1.md", "phase2.md"))
	if got := listed("", whole.Check(3)); !strings.Contains(got, "phase 3 has no spec, the last one is phase2.md") {
		t.Errorf("problems of phase 3: got %q, want one that names phase2.md as the last spec", got)
	}
}
