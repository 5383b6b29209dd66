package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tree writes n files in folders of a hundred.
func tree(t testing.TB, dir string, n int) {
	t.Helper()
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("pkg%02d/mod%02d", i/1000, i/100%10))
		if i%100 == 0 {
			must(t, os.MkdirAll(sub, 0o755))
		}
		content := strings.Repeat(fmt.Sprintf("line %d of some source text\n", i), 40)
		must(t, os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%02d.go", i%100)), []byte(content), 0o644))
	}
}

// touch changes ten files of a tree of n.
func touch(t testing.TB, dir string, n, round int) {
	t.Helper()
	for i := range 10 {
		k := (i*n/10 + round) % n
		path := filepath.Join(dir, fmt.Sprintf("pkg%02d/mod%02d/file%02d.go", k/1000, k/100%10, k%100))
		must(t, os.WriteFile(path, fmt.Appendf(nil, "round %d file %d\n", round, i), 0o644))
	}
}

func commitByGit(t testing.TB, dir string) {
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "round")
}

// pairs measures abl and git in turn, in an order that alternates, and reports
// the median of the ratios.
func pairs(b *testing.B, ours, theirs func(round int)) {
	var ratios []float64
	var spent, gits []time.Duration
	measure := func(f func(int), round int) time.Duration {
		start := time.Now()
		f(round)
		return time.Since(start)
	}
	round := 0
	for b.Loop() {
		round++
		var a, g time.Duration
		if round%2 == 0 {
			a, g = measure(ours, round), measure(theirs, round)
		} else {
			g, a = measure(theirs, round), measure(ours, round)
		}
		ratios = append(ratios, float64(a)/float64(g))
		spent, gits = append(spent, a), append(gits, g)
	}
	slices.Sort(ratios)
	slices.Sort(spent)
	slices.Sort(gits)
	b.ReportMetric(ratios[len(ratios)/2], "x-git")
	b.ReportMetric(float64(spent[len(spent)/2].Microseconds())/1000, "abl-ms")
	b.ReportMetric(float64(gits[len(gits)/2].Microseconds())/1000, "git-ms")
}

// BenchmarkSnapshot10of10k commits 10 changed files of 10,000.
func BenchmarkSnapshot10of10k(b *testing.B) { changed(b, 10_000) }

// BenchmarkSnapshot10of1k commits 10 changed files of 1,000.
func BenchmarkSnapshot10of1k(b *testing.B) { changed(b, 1_000) }

func changed(b *testing.B, n int) {
	ours, theirs := b.TempDir(), b.TempDir()
	tree(b, ours, n)
	tree(b, theirs, n)
	git(b, theirs, "init", "-q")
	r := open(b, ours)
	snapshot(b, r, "first", "0")
	commitByGit(b, theirs)
	pairs(b, func(round int) {
		touch(b, ours, n, round)
		snapshot(b, r, "round", fmt.Sprint(round))
	}, func(round int) {
		touch(b, theirs, n, round)
		commitByGit(b, theirs)
	})
	if got, want := git(b, ours, "rev-parse", "HEAD^{tree}"), git(b, theirs, "rev-parse", "HEAD^{tree}"); got != want {
		b.Fatalf("tree %s, git has %s", got, want)
	}
}

// BenchmarkFirst10k makes a repository of 10,000 new files.
func BenchmarkFirst10k(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	tree(b, dir, n)
	forget := func() { must(b, os.RemoveAll(filepath.Join(dir, ".git"))) }
	pairs(b, func(int) {
		forget()
		snapshot(b, open(b, dir), "first", "0")
	}, func(int) {
		forget()
		git(b, dir, "init", "-q")
		commitByGit(b, dir)
	})
}
