package main

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// signals sends every signal to process 1 in each way that a program of its user has: by kill(2),
// by sigqueue, and as the notification of a pipe that process 1 owns. Process 1 ends on SIGTERM
// and SIGINT.
func signals([]string) {
	signal.Ignore()
	for sig := unix.Signal(1); sig <= 64; sig++ {
		if sig == unix.SIGTERM || sig == unix.SIGINT {
			continue
		}
		killed, queued, pipe := unix.Kill(1, sig), queue(1, sig), owned(1, sig)
		fmt.Printf("held: signal %d to process 1: %v, queued %v, of a pipe %v\n", sig, killed, queued, pipe)
	}
	// While a thread of process 1 handles a signal, the kernel does not drop signals without a handler.
	for range 1000 {
		for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGSTKFLT, 32, 33, 34} {
			_, _ = unix.Kill(1, unix.SIGUSR1), unix.Kill(1, sig)
		}
	}
	if err := unix.Kill(1, 0); err != nil {
		fmt.Println("HOLE: process 1 is gone:", err)
	}
}

// queue sends a signal with a value, which a program may mistake for its own fault.
func queue(pid int, sig unix.Signal) error {
	const queued = -1 // SI_QUEUE
	info := [32]int32{int32(sig), 0, queued, 0, int32(os.Getpid()), int32(os.Getuid())}
	return number(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig), structure(&info))
}

// owned makes the kernel send a signal when a pipe becomes readable.
func owned(pid int, sig unix.Signal) error {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return err
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	for command, arg := range map[int]int{unix.F_SETOWN: pid, unix.F_SETSIG: int(sig), unix.F_SETFL: unix.O_ASYNC} {
		if _, err := unix.FcntlInt(uintptr(ends[0]), command, arg); err != nil {
			return err
		}
	}
	_, err := unix.Write(ends[1], []byte("x"))
	return err
}
