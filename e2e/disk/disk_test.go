// Package disk tests abl on a disk that is full or has become read-only: existing files stay
// whole, the error names the file, and once the disk is usable the same operation succeeds.
package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/roles"
)

// small mounts a small file system.
func small(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", dir).Run(); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

// ailments lists the ways to break a disk, each with its repair.
var ailments = map[string]struct {
	hurt, repair func(dir string) error
	errno        syscall.Errno
}{
	"full": {
		func(dir string) error {
			f, err := os.Create(filepath.Join(dir, "filler"))
			if err != nil {
				return err
			}
			defer f.Close()
			for size := 1 << 20; size > 0; size /= 2 { // to the last byte
				for {
					if _, err := f.Write(make([]byte, size)); err != nil {
						break
					}
				}
			}
			return nil
		},
		func(dir string) error { return os.Remove(filepath.Join(dir, "filler")) },
		syscall.ENOSPC,
	},
	"read-only": {
		func(dir string) error { return exec.Command("mount", "-o", "remount,ro,size=4m", dir).Run() },
		func(dir string) error { return exec.Command("mount", "-o", "remount,rw,size=4m", dir).Run() },
		syscall.EROFS,
	},
}

// writer is an operation of abl that writes below a folder. Each run writes different content.
type writer struct {
	place string // the file whose content must stay whole
	write func(dir string, n int) error
}

var writers = map[string]writer{
	"the state": {"state.json", func(dir string, n int) error {
		f := &state.File{
			Version: state.Version,
			Project: "0123456789ab",
			Root:    "/x",
			Phases:  map[string]*state.Phase{"1": {Status: state.Building, Step: n, Note: strings.Repeat("x", 1000*n)}},
		}
		return state.Save(filepath.Join(dir, "state.json"), f)
	}},
	"the ledger": {"tokens.csv", func(dir string, n int) error {
		var rows []ledger.Row
		for i := range 40 { // more than fits into the rest of a page
			rows = append(rows, ledger.Row{
				Timestamp: ledger.Stamp(time.Unix(0, 0)),
				CallID:    fmt.Sprint("p1-build-1.", n),
				Model:     fmt.Sprint(strings.Repeat("m", 200), i),
				Source:    ledger.Nobody,
			})
		}
		_, err := ledger.Open(filepath.Join(dir, "tokens.csv")).Append(rows)
		return err
	}},
	"a call's outcome": {"call/outcome.json", func(dir string, n int) error {
		rec := roles.Record{Dir: filepath.Join(dir, "call")}
		if err := os.MkdirAll(rec.Dir, 0o755); err != nil {
			return err
		}
		return rec.SaveOutcome(roles.Outcome{Key: fmt.Sprint("k", n), Reason: strings.Repeat("x", 5000)})
	}},
	"a commit": {"src/.git/refs/heads/main", func(dir string, n int) error {
		src := filepath.Join(dir, "src")
		if err := os.MkdirAll(src, 0o755); err != nil {
			return err
		}
		if n == 1 {
			if err := os.WriteFile(filepath.Join(src, "a.txt"), []byte("a"), 0o644); err != nil {
				return err
			}
		}
		r, err := git.Open(src, git.Options{})
		if err != nil {
			return err
		}
		_, err = r.Snapshot(context.Background(), git.Message{Subject: fmt.Sprint("step-", n), Call: fmt.Sprint("k", n)})
		return err
	}},
}

func TestBrokenDisks(t *testing.T) {
	for what, w := range writers {
		for how, a := range ailments {
			t.Run(what+" on a disk that is "+how, func(t *testing.T) {
				dir := small(t)
				if err := w.write(dir, 1); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, w.place)
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := a.hurt(dir); err != nil {
					t.Fatal(err)
				}
				err = w.write(dir, 2)
				var torn *hostfs.ShortWrite
				if !errors.Is(err, a.errno) && !(errors.As(err, &torn) && a.errno == syscall.ENOSPC) ||
					!strings.Contains(err.Error(), dir) {
					t.Errorf("got error %v, want %v and the file", err, a.errno)
				}
				if after, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(after, before) || what != "the ledger" &&
					len(after) != len(before) {
					t.Errorf("the existing file: got %d bytes, error %v, want its %d bytes unchanged", len(after), err,
						len(before))
				}
				if err := a.repair(dir); err != nil {
					t.Fatal(err)
				}
				if err := w.write(dir, 2); err != nil {
					t.Errorf("writing after the repair: got error %v, want none", err)
				}
				if after, err := os.ReadFile(path); err != nil || bytes.Equal(after, before) {
					t.Errorf("the file after the repair: got %d bytes, error %v, want new content", len(after), err)
				}
			})
		}
	}
}
