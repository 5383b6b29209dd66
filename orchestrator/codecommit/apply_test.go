package codecommit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/orchestrator/codecommit"
)

const stage = "keep/.apply"

// plant creates a tree of files.
func plant(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	err := os.MkdirAll(filepath.Join(root, "keep"), 0o755)
	for name, content := range files {
		path := filepath.Join(root, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// look returns a tree as text, one line per entry.
func look(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "%s %s", info.Mode(), name)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var before = map[string]string{"a": "old a\n", "src/b": "old b\n", "src/gone": "g\n", "run.sh": "x\n"}

func edits() []codecommit.Edit {
	return []codecommit.Edit{
		{Path: "a", Content: "new a\n"}, {Path: "src/b", Content: "new b\n"}, {Path: "src/gone", Delete: true},
		{Path: "new/deep/c", Content: "c\n"}, {Path: "new/d", Content: ""}, {Path: "run.sh", Content: "y\n"},
	}
}

func TestApply(t *testing.T) {
	root := plant(t, before)
	if err := os.Chmod(filepath.Join(root, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "a"), filepath.Join(root, "second-name")); err != nil {
		t.Fatal(err)
	}
	if err := codecommit.Apply(root, stage, edits()); err != nil {
		t.Fatal(err)
	}
	want := plant(t, map[string]string{"a": "new a\n", "src/b": "new b\n", "new/deep/c": "c\n", "new/d": "", "run.sh": "y\n", "second-name": "old a\n"})
	if err := os.Chmod(filepath.Join(want, "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	if got, want := look(t, root), look(t, want); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Edits that cannot be made leave the tree unchanged.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		odd  func(root string) error
		edit codecommit.Edit
	}{
		{"link on the way", func(r string) error { return os.Symlink("src", filepath.Join(r, "l")) }, codecommit.Edit{Path: "l/b", Content: "x"}},
		{"link in the place", func(r string) error { return os.Symlink("a", filepath.Join(r, "l")) }, codecommit.Edit{Path: "l", Content: "x"}},
		{"directory in the place", nil, codecommit.Edit{Path: "src", Content: "x"}},
		{"file on the way", nil, codecommit.Edit{Path: "a/b", Content: "x"}},
		{"nothing to delete", nil, codecommit.Edit{Path: "nope", Delete: true}},
		{"nothing to delete in no directory", nil, codecommit.Edit{Path: "no/pe", Delete: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := plant(t, before)
			if c.odd != nil {
				if err := c.odd(root); err != nil {
					t.Fatal(err)
				}
			}
			was := look(t, root)
			if err := codecommit.Apply(root, stage, append(edits(), c.edit)); !errors.Is(err, codecommit.ErrInTheWay) {
				t.Errorf("error: got %v, want %v", err, codecommit.ErrInTheWay)
			}
			if got := look(t, root); got != was {
				t.Errorf("tree: got\n%swant\n%s", got, was)
			}
		})
	}
}

// A failure at any place is undone.
func TestFailures(t *testing.T) {
	for _, at := range []string{"treeedit.staged=error(no)", "treeedit.step=error(no)", "treeedit.step=3*off->error(no)", "treeedit.step=5*off->error(no)"} {
		root := plant(t, before)
		was := look(t, root)
		if code := child(t, root, at); code != 1 {
			t.Errorf("exit code with %s: got %d, want 1", at, code)
		}
		if got := look(t, root); got != was {
			t.Errorf("%s: got\n%swant\n%s", at, got, was)
		}
	}
}

// TestMain lets the test program be the process that is killed.
func TestMain(m *testing.M) {
	if root := os.Getenv("TREEEDIT_ROOT"); root != "" {
		do := func() error { return codecommit.Apply(root, stage, edits()) }
		if os.Getenv("TREEEDIT_RECOVER") != "" {
			do = func() error { _, err := codecommit.Recover(root, stage); return err }
		}
		if do() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child makes edits in a process and returns its exit code, -1 if it was killed.
func child(t *testing.T, root, points string, more ...string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "TREEEDIT_ROOT="+root, "ABL_FAILPOINTS="+points), more...)
	cmd.Run()
	return cmd.ProcessState.ExitCode()
}

const killed = -1

// at returns a failpoint that kills at the visit after n others.
func at(place string, n int) string {
	if n == 0 {
		return place + "=kill"
	}
	return fmt.Sprintf("%s=%d*off->kill", place, n)
}

// After a kill at any place, also during Recover, Recover leaves all edits or none.
func TestKills(t *testing.T) {
	done := plant(t, before)
	if err := codecommit.Apply(done, stage, edits()); err != nil {
		t.Fatal(err)
	}
	none, all := look(t, plant(t, before)), look(t, done)
	try := func(t *testing.T, points string, want string) bool {
		t.Helper()
		root := plant(t, before)
		if child(t, root, points) != killed {
			return false
		}
		for i := 0; want == none && child(t, root, at("treeedit.undo", i), "TREEEDIT_RECOVER=1") == killed; i++ {
		}
		if _, err := codecommit.Recover(root, stage); err != nil {
			t.Errorf("Recover after %s: got error %v, want none", points, err)
		}
		if got := look(t, root); got != want {
			t.Errorf("%s: got\n%swant\n%s", points, got, want)
		}
		return true
	}
	for _, place := range []string{"treeedit.staged", "treeedit.step", "treeedit.kept"} {
		t.Run(place, func(t *testing.T) {
			n := 0
			for try(t, at(place, n), none) {
				n++
			}
			if n == 0 {
				t.Errorf("visits of %s: got 0, want some", place)
			}
		})
	}
	if !try(t, "treeedit.done=kill", all) {
		t.Error("visits of treeedit.done: got 0, want one")
	}
}

func TestRecoverTouchesNothingElse(t *testing.T) {
	root := plant(t, before)
	if restored, err := codecommit.Recover(root, stage); err != nil || restored != nil {
		t.Errorf("Recover of a whole tree: got %q, %v, want nothing restored and no error", restored, err)
	}
	// The user changed a file that the killed run had not reached.
	if code := child(t, root, at("treeedit.step", 1)); code != killed {
		t.Fatalf("exit code: got %d, want %d for killed", code, killed)
	}
	if err := os.WriteFile(filepath.Join(root, "src/b"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	restored, err := codecommit.Recover(root, stage)
	if err != nil || strings.Join(restored, " ") != "a" {
		t.Errorf("restored files: got %q, %v, want only a", restored, err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "src/b")); err != nil || string(data) != "mine\n" {
		t.Errorf("src/b: got %q, %v, want %q", data, err, "mine\n")
	}
}

// The user rewrote a file that the killed run had moved away and not yet replaced.
func TestRecoverKeepsRestoredFiles(t *testing.T) {
	root := plant(t, before)
	if code := child(t, root, at("treeedit.kept", 1)); code != killed {
		t.Fatalf("exit code: got %d, want %d for killed", code, killed)
	}
	if err := os.WriteFile(filepath.Join(root, "src/b"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	restored, err := codecommit.Recover(root, stage)
	if err != nil || strings.Join(restored, " ") != "a" {
		t.Errorf("restored files: got %q, %v, want only a", restored, err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "src/b")); err != nil || string(data) != "mine\n" {
		t.Errorf("src/b: got %q, %v, want %q", data, err, "mine\n")
	}
}

// A journal that came with the tree is ignored.
func TestForeignJournals(t *testing.T) {
	for _, text := range []string{
		`{"version":1,"place":"1:2","steps":[{"path":"a","was":true}]}`, `{"version":1,"steps":[{"path":"a"}]}`, `{"version":2}`, `{`, ``,
		`{"version":1,"place":"PLACE","steps":[{"path":"a"}]}`, `{"place":"1:2","files":["a"]}`, `{"place":"PLACE"}`,
		`{"place":"PLACE","files":["../victim"],"new":[false]}`, `{"place":"PLACE","files":["x/../../victim"],"new":[false]}`, `{"place":"PLACE","files":["../victim"],"new":[true]}`,
		`{"place":"PLACE","files":["a"],"new":[]}`, `{"place":"PLACE","files":["a"],"new":null}`,
	} {
		top := plant(t, map[string]string{"victim": "v", "root/a": "a\n", "root/" + stage + "/old0": "evil"})
		root := filepath.Join(top, "root")
		info, err := os.Stat(filepath.Join(root, stage))
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		text = strings.ReplaceAll(text, "PLACE", fmt.Sprintf("%d:%d", st.Dev, st.Ino))
		if err := os.WriteFile(filepath.Join(root, stage, "journal.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		was := look(t, top)
		if restored, err := codecommit.Recover(root, stage); err == nil || restored != nil {
			t.Errorf("Recover with the journal %s: got %q, %v, want nothing restored and an error", text, restored, err)
		}
		if got := look(t, top); got != was {
			t.Errorf("%s: got\n%swant\n%s", text, got, was)
		}
	}
}

// A folder that was replaced by a link meanwhile is not followed.
func TestLinksMeanwhile(t *testing.T) {
	swap := func(root string) {
		src := filepath.Join(root, "src")
		if err := errors.Join(os.Rename(src, filepath.Join(root, "moved")), os.Symlink("other", src)); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"other/b": "mine\n", "other/gone": "mine\n", "a": "old a\n", "src/b": "old b\n", "src/gone": "g\n", "run.sh": "x\n"}
	mine := func(root string) {
		for _, name := range []string{"other/b", "other/gone"} {
			if data, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(data) != "mine\n" {
				t.Errorf("%s: got %q, %v, want %q", name, data, err, "mine\n")
			}
		}
	}
	root := plant(t, files)
	if code := child(t, root, at("treeedit.step", 2)); code != killed {
		t.Fatalf("exit code: got %d, want %d for killed", code, killed)
	}
	swap(root)
	if _, err := codecommit.Recover(root, stage); !errors.Is(err, codecommit.ErrInTheWay) {
		t.Errorf("error: got %v, want %v", err, codecommit.ErrInTheWay)
	}
	mine(root)

	root, dir := plant(t, files), t.TempDir()
	ended := make(chan int)
	go func() { ended <- child(t, root, "treeedit.kept=1*off->1*pause", "ABL_FAILPOINT_DIR="+dir) }()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "treeedit.kept.here")); err == nil {
			break
		}
	}
	if err := os.Remove(filepath.Join(root, "other/b")); err != nil {
		t.Fatal(err)
	}
	swap(root)
	if err := os.WriteFile(filepath.Join(dir, "treeedit.kept.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 1 {
		t.Errorf("exit code: got %d, want 1", code)
	}
	if _, err := os.Stat(filepath.Join(root, "other/b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error of other/b behind the link: got %v, want %v", err, fs.ErrNotExist)
	}
}

// The backup of an answer without edits has no files, so nothing is restored.
func TestRecoverWithoutFiles(t *testing.T) {
	root := plant(t, before)
	was, dir := look(t, root), filepath.Join(root, stage)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	text := fmt.Sprintf(`{"place":"%d:%d","files":null,"new":null}`, st.Dev, st.Ino)
	if err := os.WriteFile(filepath.Join(dir, "journal.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if restored, err := codecommit.Recover(root, stage); err != nil || restored != nil {
		t.Errorf("Recover without files: got %q, %v, want nothing restored and no error", restored, err)
	}
	if got := look(t, root); got != was {
		t.Errorf("tree: got\n%swant\n%s", got, was)
	}
}

func TestManyDirectories(t *testing.T) {
	root := plant(t, nil)
	var many []codecommit.Edit
	for i := range 600 {
		many = append(many, codecommit.Edit{Path: fmt.Sprintf("d%d/e/f", i), Content: "x\n"})
	}
	if err := codecommit.Apply(root, stage, many); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(look(t, root), ` "x\n"`); n != len(many) {
		t.Errorf("files with a line: got %d, want %d", n, len(many))
	}
}

// 200 files are changed, compared with git apply.
func BenchmarkApply200(b *testing.B) {
	const n = 200
	old, next := map[string]string{}, []codecommit.Edit{}
	for i := range n {
		name := fmt.Sprintf("src/d%d/f%d.txt", i%20, i)
		old[name] = strings.Repeat(fmt.Sprintf("line of %d\n", i), 50)
		next = append(next, codecommit.Edit{Path: name, Content: old[name] + "one more\n"})
	}
	git := func(dir string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	var mine, gits time.Duration
	for b.Loop() {
		ours, theirs := plant(b, old), plant(b, old)
		for _, dir := range []string{ours, theirs} {
			git(dir, "init", "-q")
			git(dir, "add", "-A")
		}
		syscall.Sync() // a user's tree is on disk by then
		begun := time.Now()
		if err := codecommit.Apply(ours, stage, next); err != nil {
			b.Fatal(err)
		}
		mine += time.Since(begun)
		patch := filepath.Join(b.TempDir(), "patch")
		if err := os.WriteFile(patch, []byte(git(ours, "diff")), 0o600); err != nil {
			b.Fatal(err)
		}
		syscall.Sync()
		begun = time.Now()
		git(theirs, "apply", patch)
		gits += time.Since(begun)
	}
	b.ReportMetric(float64(mine.Milliseconds())/float64(b.N), "apply-ms")
	b.ReportMetric(float64(mine)/float64(gits), "x-git-apply")
}

// A link that the user created where a killed run would create a folder is kept.
func TestRecoverLeavesLinks(t *testing.T) {
	root := plant(t, before)
	if code := child(t, root, at("treeedit.step", 3)); code != killed { // before new/deep/c
		t.Fatalf("exit code: got %d, want %d for killed", code, killed)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(root, "new")), os.Symlink("src", filepath.Join(root, "new"))); err != nil {
		t.Fatal(err)
	}
	if _, err := codecommit.Recover(root, stage); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(filepath.Join(root, "new")); err != nil || to != "src" {
		t.Errorf("target of the link new: got %q, %v, want src", to, err)
	}
}

// A replaced file keeps its line endings and its byte order mark, and a new script is executable.
func TestApplyKeepsTheForm(t *testing.T) {
	for _, c := range []struct{ name, before, content, want string }{
		{"crlf", "one\r\ntwo\r\n", "one\nthree\n", "one\r\nthree\r\n"},
		{"crlf-in-the-answer", "one\r\ntwo\r\n", "one\r\nthree\n", "one\r\nthree\r\n"},
		{"mostly-crlf", "one\r\ntwo\r\nthree\n", "one\n", "one\r\n"},
		{"mostly-lf", "one\r\ntwo\nthree\n", "one\r\ntwo\n", "one\r\ntwo\n"},
		{"one-line", "one", "two\nthree\n", "two\nthree\n"},
		{"byte-order-mark", "\ufeffone\r\n", "two\n", "\ufefftwo\r\n"},
		{"byte-order-mark-in-the-answer", "\ufeffone\n", "\ufefftwo\n", "\ufefftwo\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := plant(t, map[string]string{"a.txt": c.before})
			if err := codecommit.Apply(root, stage, []codecommit.Edit{{Path: "a.txt", Content: c.content}}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(root, "a.txt")); err != nil || string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	root := plant(t, map[string]string{"old.sh": "#!/bin/sh\n"})
	edits := []codecommit.Edit{{Path: "new.sh", Content: "#!/bin/sh\n"}, {Path: "old.sh", Content: "#!/bin/sh\ntrue\n"}, {Path: "a.txt", Content: "text\n"}}
	if err := codecommit.Apply(root, stage, edits); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"new.sh": true, "old.sh": false, "a.txt": false} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.Mode()&0o100 != 0 != want {
			t.Errorf("%s: got mode %v, %v, want that it can be executed: %v", name, info.Mode(), err, want)
		}
	}
}
