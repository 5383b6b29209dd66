package spec

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// In a read-only directory Keep returns the right ids and an error.
func TestIDFileNotWritable(t *testing.T) {
	dir := write(t, "phase1.md")
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	s, err := asNobody(t, dir)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot save the ids of the contracts: ") || idsOf(s, 1) != "C1" {
		t.Errorf("ids: got %v, error %v, want C1 and an error that they cannot be saved", idsOf(s, 1), err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("files: got %v, want only phase1.md", names)
	}
}

// asNobody calls Keep on a thread without the file system privileges of root.
func asNobody(t *testing.T, dir string) (s Set, err error) {
	if os.Geteuid() != 0 {
		s, err = keepIDs(dir, MaxPhase)
		return s, err
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if strings.HasPrefix(at, os.TempDir()+"/") {
			if err := os.Chmod(at, 0o555); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(filepath.Join(dir, "phase1.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if err = unix.Setfsuid(65534); err == nil {
			s, err = keepIDs(dir, MaxPhase)
		}
	}()
	<-done
	return s, err
}
