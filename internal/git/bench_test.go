package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
)

// tree writes n files in directories of a hundred.
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

// sweeps measures a sweep and a plain walk of the same tree of n files, of which all or none are
// ignored.
func sweeps(b *testing.B, n int, ignored bool) {
	dir := b.TempDir()
	tree(b, dir, n)
	if ignored {
		must(b, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("pkg*/\n"), 0o644))
	}
	r, err := Open(dir, Options{Cache: filepath.Join(b.TempDir(), "cache")})
	must(b, err)
	keep := func(state.Found) error { return nil }
	time.Sleep(2 * time.Second) // so that the files' times are believed
	m := message("first", "1")
	m.Keep = keep
	_, err = r.Snapshot(b.Context(), m)
	must(b, err)
	pairs(b, "stat-walk", func(int) {
		must(b, r.Sweep(b.Context(), keep))
	}, func(int) {
		must(b, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
			if path == filepath.Join(dir, ".git") {
				return filepath.SkipDir
			}
			return err
		}))
	})
}

func BenchmarkSweep10(b *testing.B)         { sweeps(b, 10, false) }
func BenchmarkSweep10k(b *testing.B)        { sweeps(b, 10_000, false) }
func BenchmarkSweepIgnored10k(b *testing.B) { sweeps(b, 10_000, true) }

// BenchmarkSweepAdds measures the cost of sweeping in a snapshot of 10 changed files of 10,000,
// relative to the same snapshot without it.
func BenchmarkSweepAdds(b *testing.B) {
	const n = 10_000
	with, without := b.TempDir(), b.TempDir()
	tree(b, with, n)
	tree(b, without, n)
	a, err := Open(with, Options{Cache: filepath.Join(b.TempDir(), "cache")})
	must(b, err)
	c := open(b, without)
	snapshot(b, a, "first", "0")
	snapshot(b, c, "first", "0")
	pairs(b, "unswept", func(round int) {
		touch(b, with, n, round)
		m := message("round", fmt.Sprint(round))
		m.Keep = func(state.Found) error { return nil }
		_, err := a.Snapshot(b.Context(), m)
		must(b, err)
	}, func(round int) {
		touch(b, without, n, round)
		snapshot(b, c, "round", fmt.Sprint(round))
	})
}

func commitByGit(t testing.TB, dir string) {
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "round")
}

// pairs measures two functions in alternating order and reports the median of the ratios.
func pairs(b *testing.B, anchor string, ours, theirs func(round int)) {
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
	b.ReportMetric(ratios[len(ratios)/2], "x-"+anchor)
	b.ReportMetric(float64(spent[len(spent)/2].Microseconds())/1000, "abl-ms")
	b.ReportMetric(float64(gits[len(gits)/2].Microseconds())/1000, anchor+"-ms")
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
	pairs(b, "git", func(round int) {
		touch(b, ours, n, round)
		snapshot(b, r, "round", fmt.Sprint(round))
	}, func(round int) {
		touch(b, theirs, n, round)
		commitByGit(b, theirs)
	})
	if got, want := git(b, ours, "rev-parse", "HEAD^{tree}"), git(b, theirs, "rev-parse", "HEAD^{tree}"); got != want {
		b.Fatalf("tree: got %s, want git's %s", got, want)
	}
}

// BenchmarkFirst10k creates a repository of 10,000 new files.
func BenchmarkFirst10k(b *testing.B) {
	const n = 10_000
	dir := b.TempDir()
	tree(b, dir, n)
	forget := func() { must(b, os.RemoveAll(filepath.Join(dir, ".git"))) }
	pairs(b, "git", func(int) {
		forget()
		snapshot(b, open(b, dir), "first", "0")
	}, func(int) {
		forget()
		git(b, dir, "init", "-q")
		commitByGit(b, dir)
	})
}
