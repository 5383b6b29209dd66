package proc

import (
	"runtime"
	"sync"
)

// Room is the number of threads that HoldThreads reserves: two for Go code, and the others for
// waiting system calls, signals and timers.
const Room = 10

// HoldThreads creates the threads that this process will need. Call it first in a process that
// shares a process limit with an untrusted program: Go's runtime exits with code 2 if it cannot
// create a thread, so a fork bomb would end its supervisor. The runtime keeps and reuses its
// threads.
func HoldThreads() {
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	var all, gone sync.WaitGroup
	all.Add(Room)
	for range Room {
		gone.Go(func() {
			runtime.LockOSThread() // a waiting goroutine keeps its thread, so the next one needs a new one
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	gone.Wait()
}
