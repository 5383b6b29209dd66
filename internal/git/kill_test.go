package git

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const committing = "WORKSPACE_TEST_COMMIT_IN"

// TestMain is also the process that a test kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(committing); dir != "" {
		commitForEver(dir)
	}
	os.Exit(m.Run())
}

// commitForEver edits and commits until it is killed, and prints each commit.
func commitForEver(dir string) {
	r, err := Open(dir, Options{})
	fail := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	fail(err)
	for i := 0; ; i++ {
		for k := range 1 + i%20 {
			path := filepath.Join(dir, fmt.Sprintf("d%d/f%d", k%4, k))
			os.MkdirAll(filepath.Dir(path), 0o755)
			fail(os.WriteFile(path, fmt.Appendf(nil, "%d %d %d", os.Getpid(), i, k), 0o644))
		}
		m := Message{Subject: fmt.Sprint("commit ", i), Call: fmt.Sprintf("%d.%d", os.Getpid(), i)}
		s, err := r.Snapshot(context.Background(), m)
		fail(err)
		if i%3 == 0 {
			fail(r.Tag(context.Background(), "passed", s.Commit.Hash))
		}
		fmt.Println(s.Commit.Hash)
	}
}

// The test kills a committing process at random moments. Its printed commits exist, git fsck
// reports nothing, and the next process continues.
func TestKills(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 10
	}
	dir := t.TempDir()
	open(t, dir)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	last, locks, commits := "", 0, 0
	for i := range kills {
		said := commitUntilKilled(t, dir, 1+rng.IntN(4), time.Duration(rng.IntN(15_000))*time.Microsecond)
		commits += len(said)
		if left, _ := filepath.Glob(filepath.Join(dir, ".git/*.lock")); len(left) > 0 {
			locks++
		}
		sound(t, dir)
		if len(said) > 0 {
			last = said[len(said)-1]
		}
		if last != "" {
			git(t, dir, "merge-base", "--is-ancestor", last, "HEAD")
			last = git(t, dir, "rev-parse", "HEAD")
		}
		if roots := git(t, dir, "rev-list", "--max-parents=0", "--all"); strings.Contains(roots, "\n") {
			t.Fatalf("root commits after kill %d: got\n%s\nwant one", i, roots)
		}
	}
	snapshot(t, open(t, dir), "the end", "end")
	clean(t, dir)
	sound(t, dir)
	t.Logf("%d kills, %d commits heard of, %d times a lock was left", kills, commits, locks)
}

// A kill between the two renames of a pack leaves only its index.
func TestIndexWithoutPack(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	many := map[string]string{}
	for i := range 40 {
		many[fmt.Sprint("f", i)] = fmt.Sprint(i)
	}
	write(t, dir, many)
	snapshot(t, r, "one", "1")
	packs, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.idx"))
	if len(packs) != 1 {
		t.Fatalf("packs: got %d, want 1", len(packs))
	}
	data, err := os.ReadFile(packs[0])
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, ".git/objects/pack/pack-"+strings.Repeat("ab", 20)+".idx"), data, 0o444))
	write(t, dir, map[string]string{"f1": "changed"})
	snapshot(t, open(t, dir), "two", "2")
	sound(t, dir)
	if _, ok, err := r.Head(); err != nil || !ok {
		t.Errorf("Head: got %t, %v, want a commit", ok, err)
	}
	if n := git(t, dir, "rev-list", "--count", "HEAD"); n != "2" {
		t.Errorf("commits: got %s, want 2", n)
	}
}

// commitUntilKilled kills a committing process shortly after some commits. It returns the commits
// that the process printed.
func commitUntilKilled(t *testing.T, dir string, commits int, moment time.Duration) (said []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), committing+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Fatalf("line of the child process: got %q, want a commit", lines.Text())
		}
		said = append(said, lines.Text())
		if len(said) == commits {
			time.AfterFunc(moment, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait() // it was killed
	return said
}
