package git

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test edits two copies of a tree randomly, commits one with abl and the other with git, and
// compares the trees after each step.
func TestLikeGit(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			likeGit(t, rand.New(rand.NewPCG(seed, 7)), 25)
		})
	}
}

func likeGit(t *testing.T, rng *rand.Rand, steps int) {
	ours, theirs := t.TempDir(), t.TempDir()
	git(t, theirs, "init", "-q", "-b", "main")
	r := open(t, ours)
	for step := range steps {
		var done []string
		for range 1 + rng.IntN(12) {
			done = append(done, edit(rng, ours, theirs))
		}
		snapshot(t, r, fmt.Sprintf("step %d", step), fmt.Sprint(step))
		git(t, theirs, "add", "-A")
		want, got := git(t, theirs, "write-tree"), git(t, ours, "rev-parse", "HEAD^{tree}")
		if got != want {
			t.Fatalf("step %d: tree after\n%s\ngot\n%s\nwant git's\n%s",
				step, strings.Join(done, "\n"),
				git(t, ours, "ls-tree", "-r", "HEAD"), git(t, theirs, "ls-tree", "-r", want))
		}
		if again := git(t, ours, "write-tree"); again != want {
			t.Fatalf("step %d: tree of the index: got %s, want %s", step, again, want)
		}
		clean(t, ours)
		differs, err := r.Differs(t.Context(), "")
		if err != nil || len(differs) > 0 {
			t.Fatalf("step %d: Differs: got %q, %v, want no path", step, differs, err)
		}
	}
	sound(t, ours) // which looks at all that the steps have left
}

var oddNames = []string{
	"a", "b", "c", "d e", "-rf", "a.c", "a-b", "x\ny", "\x01", "ü", "\xff\xfe", "aux", "COM1", "back\\slash",
	"..foo", "...", "a:b", "'\"", "z", "build", "keep.log", "x.log", "tmp", ".hidden", "gitx", "0", "~", "~1", "gi~2", "git~2", "[x]", "*", "?",
}

var ignoreLines = []string{
	"*.log", "!keep.log", "/build", "tmp/", "**/a/b", "a/**", "!a/b/", "b*", "\\!x", "#c", "d\\ e", "z  ", "c/*/d", "[a-c]", "[!x]*x",
	"*", "!*/", "!.gitignore", "**/z", "a/**/c", "/a", "x\\\ny", "tmp\r", "[[:digit:]]", "\\*", "a**b", "!/b", ".hidden",
}

func name(rng *rand.Rand) string {
	parts := make([]string, 1+rng.IntN(3))
	for i := range parts {
		parts[i] = oddNames[rng.IntN(len(oddNames))]
	}
	return filepath.Join(parts...)
}

// edit makes the same random change in all directories and describes it.
func edit(rng *rand.Rand, dirs ...string) string {
	p, q := name(rng), name(rng)
	content := strings.Repeat(fmt.Sprint(rng.IntN(5)), rng.IntN(4))
	var lines []string
	for range rng.IntN(4) {
		lines = append(lines, ignoreLines[rng.IntN(len(ignoreLines))])
	}
	kind := rng.IntN(12)
	for _, dir := range dirs {
		path := filepath.Join(dir, p)
		switch kind {
		case 0, 1, 2, 3: // a file, over whatever stands there
			makeRoom(dir, p)
			os.WriteFile(path, []byte(content), 0o644)
		case 4: // a folder with a file, over whatever stands there
			makeRoom(dir, filepath.Join(p, "in"))
			os.WriteFile(filepath.Join(path, "in"), []byte(content), 0o644)
		case 5:
			makeRoom(dir, p)
			os.Symlink("/etc/"+content, path)
		case 6:
			os.RemoveAll(path)
		case 7:
			os.Chmod(path, 0o755)
		case 8:
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				os.Chmod(path, 0o644)
			}
		case 9:
			makeRoom(dir, q)
			os.Rename(path, filepath.Join(dir, q))
		case 10:
			file := filepath.Join(dir, filepath.Dir(p), ".gitignore")
			makeRoom(dir, filepath.Join(filepath.Dir(p), ".gitignore"))
			os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
		case 11:
			os.RemoveAll(filepath.Join(dir, filepath.Dir(p), ".gitignore"))
		}
	}
	return fmt.Sprintf("%d %q %q %q %q", kind, p, q, content, lines)
}

// makeRoom removes anything at the path and creates its parents.
func makeRoom(dir, path string) {
	os.RemoveAll(filepath.Join(dir, path))
	for i, c := range path {
		above := filepath.Join(dir, path[:i])
		if c != '/' {
			continue
		}
		if info, err := os.Lstat(above); err == nil && !info.IsDir() {
			os.Remove(above)
		}
		os.Mkdir(above, 0o755)
	}
}
