package proc

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// waiting is how many of a child's threads wait in the kernel at the same time.
const waiting = Room - 3

// After HoldThreads a child can block in many system calls without more threads.
func TestHeldThreadsAreEnough(t *testing.T) {
	if os.Getenv("ABL_TEST_THREADS") != "" {
		holdAndWait(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestHeldThreadsAreEnough$", "-test.v")
	child.Env = append(os.Environ(), "ABL_TEST_THREADS=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func holdAndWait(t *testing.T) {
	HoldThreads()
	held := threads(t)
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	for range waiting {
		go func() {
			var one [1]byte
			_, _ = syscall.Read(ends[0], one[:]) // holds a thread, since the descriptor blocks
			read <- struct{}{}
		}()
	}
	for blocked(t) < waiting {
		runtime.Gosched()
	}
	const begun = 1 // the runtime may have been making one when they were counted
	if now := threads(t); held < Room || now > held+begun {
		t.Errorf("threads: got %d held, then %d while %d wait, want at least %d held and at most %d later",
			held, now, waiting, Room, held+begun)
	}
	if _, err := unix.Write(ends[1], make([]byte, waiting)); err != nil {
		t.Fatal(err)
	}
	for range waiting {
		<-read
	}
}

func threads(t *testing.T) int {
	t.Helper()
	return len(tasks(t))
}

func tasks(t *testing.T) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// blocked returns the number of this process's threads that are in a read system call.
func blocked(t *testing.T) (n int) {
	t.Helper()
	for _, task := range tasks(t) {
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/syscall")
		if err != nil {
			t.Fatal(err)
		}
		nr, _, _ := strings.Cut(string(data), " ")
		if got, err := strconv.Atoi(nr); err == nil && got == unix.SYS_READ {
			n++
		}
	}
	return n
}
