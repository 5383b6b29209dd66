package hostfs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// TestMain is also the process that a test kills: it takes the lock, starts a child that survives
// it, and waits.
func TestMain(m *testing.M) {
	path := os.Getenv("ABL_TEST_LOCK")
	if path == "" {
		os.Exit(m.Run())
	}
	h, err := Hold(path)
	child := exec.Command("sleep", "600")
	startErr := child.Start()
	fmt.Println(err, startErr, child.Process.Pid)
	for {
		time.Sleep(time.Hour)
		runtime.KeepAlive(h) // what nobody holds is closed, and so unlocked, by the garbage collector
	}
}

func mustLock(t *testing.T, path string) func() error {
	t.Helper()
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := mustLock(t, path)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(path)
	says := fmt.Sprintf(`is held by process %d on %q since 20`, os.Getpid(), host)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want %s", err, says)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("lock file: got %v, want a file", err)
	}
	if err := mustLock(t, path)(); err != nil {
		t.Error(err)
	}
}

// Verify fails if the lock file was removed or replaced.
func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	h, err := Hold(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Verify(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := h.Verify(); !errors.Is(err, ErrLost) {
		t.Errorf("Verify of a removed lock: got %v, want ErrLost", err)
	}
	other := mustLock(t, path)
	if err := h.Verify(); !errors.Is(err, ErrLost) {
		t.Errorf("Verify of another's lock: got %v, want ErrLost", err)
	}
	if err := errors.Join(other(), h.Unlock()); err != nil {
		t.Error(err)
	}
}

func TestLockOfAKilledProcessIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "ABL_TEST_LOCK="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var child int
	if _, scanErr := fmt.Sscanf(line, "<nil> <nil> %d", &child); err != nil || scanErr != nil {
		t.Fatalf("line of the child: got %q, %v, %v, want no errors and a process id", line, err, scanErr)
	}
	defer unix.Kill(child, unix.SIGKILL)
	_, err = Lock(path)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", cmd.Process.Pid)) {
		t.Errorf("Lock: got %v, want ErrHeld that names process %d", err, cmd.Process.Pid)
	}
	if !Locked(path) {
		t.Error("Locked with a running holder: got false, want true")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // ends as killed
	if Locked(path) {
		t.Error("Locked with a killed holder: got true, want false")
	}
	if err := unix.Kill(child, 0); err != nil {
		t.Fatalf("the child must live for this test: %v", err)
	}
	if err := mustLock(t, path)(); err != nil {
		t.Error(err)
	}
}

// Locked ignores the process id in the file, which may belong to another program by now.
func TestLockedAsksTheKernel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if Locked(path) {
		t.Error("Locked without a lock file: got true, want false")
	}
	host, _ := os.Hostname()
	for _, content := range []string{
		"", "{", `{"pid":1,"host":"elsewhere.example"}`, `{"pid":-1}`, fmt.Sprintf(`{"pid":%d,"host":%q}`, os.Getppid(), host),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if Locked(path) {
			t.Errorf("Locked with a free lock file of %q: got true, want false", content)
		}
		unlock := mustLock(t, path)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if !Locked(path) {
			t.Errorf("Locked with a locked file of %q: got false, want true", content)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
}

// A call of Locked does not make Hold fail.
func TestLockedDoesNotBlockHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var looks sync.WaitGroup
	done := make(chan struct{})
	looks.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				Locked(path)
			}
		}
	})
	for range 200 {
		if err := mustLock(t, path)(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	looks.Wait()
}

func TestHolderUnknown(t *testing.T) {
	for _, content := range []string{"", "{", `{"pid":0}`, strings.Repeat("x", 5000)} {
		path := filepath.Join(t.TempDir(), "lock")
		unlock := mustLock(t, path)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Lock(path); !errors.Is(err, ErrHeld) || !strings.HasSuffix(err.Error(), "is held by another process") {
			t.Errorf("Lock with a file of %.10q: got %v, want ErrHeld by another process", content, err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
}

func TestClaimRejectsReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l := flock.New(path)
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer l.Close()
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &Held{l, path}
	if err := h.writeHolder(); !errors.Is(err, ErrLost) {
		t.Errorf("writeHolder to a replaced file: got %v, want ErrLost", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := h.writeHolder(); err == nil {
		t.Error("writeHolder to a deleted file: got no error, want one")
	}
}

func TestLockRejectsOtherFileTypes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Symlink("target", at("link")), unix.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("dir"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "fifo", "dir", "none/lock"} {
		t.Run(name, func(t *testing.T) {
			if _, err := Lock(at(name)); err == nil || errors.Is(err, ErrHeld) {
				t.Errorf("got %v, want an error other than %v", err, ErrHeld)
			}
		})
	}
}
