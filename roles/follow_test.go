package roles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"abl/internal/testing/rolestest"
	"abl/roles/agent"

	"golang.org/x/sys/unix"
)

// lines returns the lines that a Tail reads from data that grows piece by piece.
func lines(t *testing.T, data []byte, pieces []int) []string {
	t.Helper()
	var out []string
	var file bytes.Buffer
	tl := &Tail{In: &file, To: func(line []byte, cut bool) { out = append(out, fmt.Sprintf("%q %t", line, cut)) }}
	for _, n := range pieces {
		n = min(n, len(data))
		file.Write(data[:n])
		data = data[n:]
		if _, err := tl.Pump(); err != nil {
			t.Fatal(err)
		}
	}
	file.Write(data)
	if err := tl.Finish(); err != nil {
		t.Fatal(err)
	}
	return out
}

// The pieces in which an output grows make no difference to its lines.
func FuzzTail(f *testing.F) {
	f.Add([]byte("a\nbc\n\nd"), []byte{1, 2})
	f.Add([]byte("\n\n"), []byte{0, 1})
	f.Add([]byte("no end"), []byte{})
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		var pieces []int
		for _, n := range cuts {
			pieces = append(pieces, int(n))
		}
		whole := lines(t, data, nil)
		if got := lines(t, data, pieces); !slices.Equal(got, whole) {
			t.Errorf("lines of pieces %v: got %v, want %v", pieces, got, whole)
		}
		text := strings.TrimSuffix(string(data), "\n")
		want := strings.Split(text, "\n")
		if len(data) == 0 {
			want = nil
		}
		if len(whole) != len(want) {
			t.Errorf("lines of %q: got %d, want %d", data, len(whole), len(want))
		}
	})
}

func TestLongLinesAreCut(t *testing.T) {
	long := bytes.Repeat([]byte("x"), agent.MaxLine+100)
	var sizes []string
	tl := &Tail{In: bytes.NewReader(append(append(slices.Clone(long), '\n'), "short\n"...)), To: func(line []byte, cut bool) {
		sizes = append(sizes, fmt.Sprint(len(line), cut))
	}}
	if err := tl.Finish(); err != nil {
		t.Fatal(err)
	}
	if want := []string{fmt.Sprint(agent.MaxLine, true), "5 false"}; !slices.Equal(sizes, want) {
		t.Errorf("got %v, want %v", sizes, want)
	}
	if tl.Read != int64(len(long)+7) || cap(tl.line) > 2<<20 {
		t.Errorf("long line: got %d bytes read, %d in memory, want %d read, at most %d in memory",
			tl.Read, cap(tl.line), len(long)+7, 2<<20)
	}
}

// An endless output is read in parts, up to its limit.
func TestTailGoesInTurns(t *testing.T) {
	tl := &Tail{In: endless{}, To: func([]byte, bool) {}}
	if all, err := tl.Pump(); all || err != nil || tl.Read != turn {
		t.Errorf("first turn: got %d bytes, end %t, error %v, want %d bytes and no end", tl.Read, all, err, turn)
	}
	tl = &Tail{In: endless{}, Most: turn + 5, To: func([]byte, bool) {}}
	if err := tl.Finish(); err != nil || tl.Read != turn+5 {
		t.Errorf("output above the limit: got %d bytes, error %v, want %d bytes", tl.Read, err, turn+5)
	}
}

// endless is an endless output.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestTailReportsReadErrors(t *testing.T) {
	tl := &Tail{In: iotest.ErrReader(os.ErrClosed), To: func([]byte, bool) {}}
	if err := tl.Finish(); err == nil {
		t.Error("error of a failed read: got none, want one")
	}
}

// A link or FIFO instead of an output is not followed, and abl does not wait for it.
func TestOpenOutput(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	rolestest.Write(t, path("file"), "x")
	if err := os.Symlink("file", path("link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"file": true, "link": false, "fifo": false, ".": false, "none": false} {
		f, err := OpenOutput(path(name))
		if (err == nil) != ok {
			t.Errorf("error of %s: got %v, want an error: %t", name, err, !ok)
		}
		if err == nil {
			f.Close()
		}
	}
}

// A follower waits for an output that does not exist yet, and reads it to its last line, which may
// lack a newline.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout")
	grows := []string{"", "a\nb", "c\n\n", "d"}
	looks := 0
	over := func() (bool, error) {
		if looks > 0 {
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err == nil {
				_, err = f.WriteString(grows[looks])
			}
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		looks++
		return looks == len(grows), nil
	}
	var got []string
	err := Lines(t.Context(), path, func(line []byte, _ bool) { got = append(got, string(line)) }, over)
	if want := []string{"a", "bc", "", "d"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q (%v)", got, want, err)
	}
	no := errors.New("no more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(no)
	never := func() (bool, error) { return false, nil }
	if err := Lines(ctx, path, func([]byte, bool) {}, never); err != no {
		t.Errorf("error of a cancelled context: got %v, want %v", err, no)
	}
	if err := Lines(t.Context(), path, func([]byte, bool) {}, func() (bool, error) { return false, no }); err != no {
		t.Errorf("error of an unreadable state: got %v, want %v", err, no)
	}
}
