package hostile

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"abl/internal/testing/lab"

	"golang.org/x/sys/unix"
)

// oracle checks, after a run of abl, everything that no agent may change.
func (s *scene) oracle(r lab.Result) {
	s.Helper()
	s.checkOutput(r)
	s.checkSecrets(r)
	s.checkOutside()
	s.checkNothingLeft()
	s.checkRecords()
}

// checkOutput checks that no control character reaches a terminal.
func (s *scene) checkOutput(r lab.Result) {
	s.Helper()
	for name, text := range map[string]string{"stdout": r.Stdout, "stderr": r.Stderr} {
		if at := oddAt(text); at >= 0 {
			s.Errorf("abl's %s controls a terminal: got %q, want no control characters", name,
				text[max(0, at-60):min(len(text), at+60)])
		}
		lacks(s, "abl's "+name, text, "panic:", "goroutine ", "internal error")
	}
}

// oddAt returns the position of the first character that controls a terminal or hides text, or
// -1.
func oddAt(text string) int {
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			return i
		case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp), r >= 0xE0000 &&
			r < 0xE0080, r == '\u200b', r == '\ufeff':
			return i
		}
	}
	return -1
}

// needles returns the forms of a canary to search for.
func needles(words ...string) (all []string) {
	for _, w := range words {
		all = append(all, encodings(w)...)
	}
	return all
}

// checkSecrets searches every place for the canaries that it must not contain.
func (s *scene) checkSecrets(r lab.Result) {
	s.Helper()
	c := s.canaries
	never := needles(c.Env, c.Key, c.Host, c.Proc)
	s.searchText("abl's output", r.Stdout+r.Stderr, append(needles(c.Src, c.Tests, c.Spec), never...))
	s.searchTree(s.Dir, func(path string) []string {
		dir, rest, _ := strings.Cut(strings.TrimPrefix(path, ".abl/logs/calls/"), "/")
		switch {
		case path == ".env":
			return nil
		case strings.HasPrefix(path, "src/"), strings.HasPrefix(path, ".abl/cache/"), strings.Contains(dir, "-build-"):
			return append(needles(c.Tests), never...)
		case strings.Contains(dir, "-verify-") && strings.HasPrefix(rest, "app/"):
			return append(needles(c.Tests, c.Spec), never...) // the app's output, which only the user reads
		case strings.HasPrefix(path, ".abl/tests/"), strings.Contains(dir, "-verify-"):
			return append(needles(c.Src), never...)
		case path == ".abl/state.json", strings.HasSuffix(path, ".csv"):
			return append(needles(c.Src, c.Tests, c.Spec), never...)
		}
		return never
	})
	s.searchObjects("src", append(needles(c.Tests), never...))
	s.searchObjects(".abl/tests", append(needles(c.Src), never...))
	for _, b := range s.watcher.seen() {
		for _, doc := range b.shown {
			s.searchText("the engine's description of "+b.Name, string(doc), append(needles(c.Src, c.Tests, c.Spec), never...))
		}
	}
	for _, line := range s.watcher.lines() {
		s.searchText("a command line", line, never)
	}
}

// outside returns digests of everything that no role may change: all but the workspaces and the
// files that abl writes.
func outside(s *scene) map[string]string {
	s.Helper()
	digests := map[string]string{}
	for name, dir := range map[string]string{"project": s.Dir, "home": s.home} {
		walk(s, dir, func(path string, info fs.FileInfo) error {
			if name == "project" {
				switch {
				case path == "src", path == ".abl/tests", path == ".abl/logs", path == ".abl/reports", path == ".abl/cache":
					return fs.SkipDir
				case path == ".abl/state.json", path == ".abl/project_map.txt", path == ".abl/lock", path == ".abl/forwards.json", path == ".abl/specs/contract-ids.txt", path == ".abl", path == ".":
					return nil
				}
			}
			digests[name+"/"+path] = fmt.Sprintf("%v %v %s",
				info.Mode(), ownerOf(info), digest(s, filepath.Join(dir, path), info))
			return nil
		})
	}
	return digests
}

func (s *scene) checkOutside() {
	s.Helper()
	now := outside(s)
	for path, was := range s.outside {
		if now[path] != was {
			s.Errorf("%s: got %q, want %q as before", path, now[path], was)
		}
	}
	for path, is := range now {
		if _, known := s.outside[path]; !known {
			s.Errorf("new file %s: got %s, want none", path, is)
		}
	}
}

// checkNothingLeft checks that nothing is left on the engine, no process runs, and no file has
// special rights.
func (s *scene) checkNothingLeft() {
	s.Helper()
	if left := s.Left(); left != "" {
		s.Errorf("left on the engine: got %s, want nothing", left)
	}
	for _, b := range s.watcher.seen() {
		for _, pid := range processesOf(b.ID) {
			s.Errorf("container %s: got process %s, want none", b.Name, pid)
		}
	}
	me := owner()
	walk(s, s.Dir, func(path string, info fs.FileInfo) error {
		mode := info.Mode()
		if mode.IsDir() {
			mode &^= fs.ModeSetgid // only sets the group of new files
		}
		if mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeCharDevice|fs.ModeSocket) != 0 || ownerOf(info) != me {
			s.Errorf("%s: got mode %v and owner %s, want no special mode and owner %s", path, mode, ownerOf(info), me)
		}
		if n, err := unix.Getxattr(filepath.Join(s.Dir, path), "security.capability", nil); err == nil && mode.IsRegular() {
			s.Errorf("%s: got capabilities of %d bytes, want none", path, n)
		}
		return nil
	})
}

var subject = regexp.MustCompile(`^phase1/(build|verify|person)/step-[0-9]+(\.[0-9]+)?$`)

// checkRecords checks that there is a state, a ledger with a row for every call, and valid
// histories.
func (s *scene) checkRecords() {
	s.Helper()
	if s.Read(".abl/state.json") == "" {
		return // the phase has not started
	}
	s.state()
	rows, err := csv.NewReader(strings.NewReader(s.Read(".abl/logs/tokens.csv"))).ReadAll()
	if err != nil || len(rows) == 0 {
		s.Errorf("tokens.csv: got %d rows, error %v, want 1 or more", len(rows), err)
		return
	}
	at, counted := slices.Index(rows[0], "call_id"), map[string]bool{}
	for _, row := range rows[1:] {
		counted[row[at]] = true
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				s.Errorf("tokens.csv: got a formula in a cell: %q, want none", cell)
			}
		}
	}
	ended, _ := filepath.Glob(filepath.Join(s.Dir, ".abl/logs/calls/*/outcome.json"))
	for _, path := range ended {
		if call := filepath.Base(filepath.Dir(path)); !counted[call] {
			s.Errorf("call %s: got no row in tokens.csv, want one", call)
		}
	}
	for _, dir := range []string{"src", ".abl/tests"} {
		if out := s.git(dir, "fsck", "--strict"); strings.Contains(out, "error") || strings.Contains(out, "missing") {
			s.Errorf("git fsck in %s: got %s, want no error", dir, out)
		}
		if _, err := os.Lstat(filepath.Join(s.Dir, dir, ".git/refs/heads")); err != nil {
			continue
		}
		for _, got := range strings.Fields(s.git(dir, "log", "--all", "--format=%s")) {
			if !subject.MatchString(got) {
				s.Errorf("history of %s: got commit %q, want only commits of abl", dir, got)
			}
		}
	}
}

// searchText fails the test for every needle in a text.
func (s *scene) searchText(where, text string, needles []string) {
	s.Helper()
	for _, n := range needles {
		if strings.Contains(text, n) {
			s.Errorf("%s: got the canary %s, want none", where, n)
		}
	}
}

// searchTree searches every file below dir for the needles that forbidden returns.
func (s *scene) searchTree(dir string, forbidden func(path string) []string) {
	s.Helper()
	walk(s, dir, func(path string, info fs.FileInfo) error {
		if !info.Mode().IsRegular() {
			return nil
		}
		f, err := os.Open(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		defer f.Close()
		for _, n := range search(s, &written{f: f}, forbidden(path)) {
			s.Errorf("%s: got the canary %s, want none", path, n)
		}
		return nil
	})
}

// searchObjects searches all objects of a history, reachable or not.
func (s *scene) searchObjects(dir string, forbidden []string) {
	s.Helper()
	if _, err := os.Lstat(filepath.Join(s.Dir, dir, ".git")); err != nil {
		return // the phase has not started
	}
	cmd := s.gitCommand(dir, "cat-file", "--batch-all-objects", "--batch")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	for _, n := range search(s, out, forbidden) {
		s.Errorf("the history of %s: got the canary %s, want none", dir, n)
	}
	if err := cmd.Wait(); err != nil {
		s.Errorf("cannot list the objects of %s: %v", dir, err)
	}
}
