package proc

import (
	"runtime"
	"sync"
)

// Room is how many threads HoldThreads takes: two that run Go code, and those
// that wait in the kernel for children, signals and timers.
const Room = 10

// HoldThreads takes the threads that this process will need, and keeps it from
// needing more. Whoever shares a limit of processes with a program that is not to
// be trusted calls it first: Go's runtime ends a process that cannot have another
// thread, with exit code 2 and no last word, so a fork bomb would end its
// supervisor. The runtime keeps a thread that it has, and uses it again.
func HoldThreads() {
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	var all, gone sync.WaitGroup
	all.Add(Room)
	for range Room {
		gone.Go(func() {
			runtime.LockOSThread() // what waits below keeps its thread, so the next one needs another
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	gone.Wait()
}
