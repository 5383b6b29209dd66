package hostfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func never(Size) bool { return false }

func filled(t testing.TB, dir, name string, bytes int) {
	t.Helper()
	path := filepath.Join(dir, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, bytes), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // blocks are counted once they are allocated
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMeasure(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	filled(t, outside, "big", 8<<20)
	filled(t, dir, "a/one", 1<<20)
	filled(t, dir, "a/two", 1<<20)
	filled(t, dir, "b/c/big", 3<<19)
	for i := range 20 {
		filled(t, dir, fmt.Sprint("many/", i), 0)
	}
	steps := []error{
		os.Link(filepath.Join(dir, "a/one"), filepath.Join(dir, "a/again")), // one file
		os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink(filepath.Join(outside, "big"), filepath.Join(dir, "a/link")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.WriteFile(filepath.Join(dir, "holes"), nil, 0o644), os.Truncate(filepath.Join(dir, "holes"), 1<<40),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	s, err := Measure(t.Context(), dir, time.Time{}, never)
	if err != nil {
		t.Fatal(err)
	}
	const files = 3<<19 + 2<<20
	if s.Bytes < files || s.Bytes > files+200<<10 {
		t.Errorf("bytes: got %d, want about %d", s.Bytes, files)
	}
	if s.Names != 32 || s.Depth != 2 {
		t.Errorf("names and depth: got %d and %d, want 32 and 2", s.Names, s.Depth)
	}
	if s.File.Path != "b/c/big" || s.Widest.Path != "many/" || s.Widest.Names != 20 {
		t.Errorf("got %+v, want b/c/big as the largest file and many/ with 20 names", s)
	}
	if s, err := Measure(t.Context(), dir, time.Now().Add(time.Hour), never); err != nil || s.Names != 32 || s.File.Path+s.Widest.Path != "" {
		t.Errorf("Measure without a recent change: got %+v, %v, want 32 names and no path", s, err)
	}
	if _, err := Measure(t.Context(), filepath.Join(dir, "link"), time.Time{}, never); err == nil {
		t.Error("Measure of a link: got no error, want one")
	}
}

// Measure stops at its limit, when its context is done, and at MaxDepth.
func TestMeasureEnds(t *testing.T) {
	dir := t.TempDir()
	for i := range 3000 {
		fill := filepath.Join(dir, fmt.Sprint("d", i%3), fmt.Sprint(i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(fill), 0o755), os.WriteFile(fill, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Measure(t.Context(), dir, time.Time{}, func(s Size) bool { return s.Names > 500 })
	if err != nil || s.Names <= 500 || s.Names > 2000 {
		t.Errorf("names up to the limit: got %d, %v, want 501 to 2000", s.Names, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, dir, time.Time{}, never); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("x/", 400)), 0o755); err != nil {
		t.Fatal(err)
	}
	if s, err := Measure(t.Context(), dir, time.Time{}, never); err != nil || s.Depth != MaxDepth {
		t.Errorf("depth: got %d, %v, want %d", s.Depth, err, MaxDepth)
	}
}

// Measure works on a tree that changes.
func TestMeasureWhileItChanges(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, "keep/file", 1<<20)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755)
			_ = os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "moved"))
			_ = os.RemoveAll(filepath.Join(dir, "moved"))
			_ = os.Symlink("/", filepath.Join(dir, "moved"))
			_ = os.Remove(filepath.Join(dir, "moved"))
		}
	}()
	for range 300 {
		s, err := Measure(t.Context(), dir, time.Time{}, never)
		if err != nil || s.Bytes < 1<<20 || s.Bytes > 2<<20 {
			t.Errorf("Measure: got %+v, %v, want 1 to 2 MiB", s, err)
			break
		}
	}
	close(stop)
	<-done
}
