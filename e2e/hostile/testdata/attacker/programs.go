package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// programs lists the attacks that take arguments and print their own result.
var programs = map[string]func([]string){
	"socket":     unixSocket,
	"threads":    threads,
	"dials":      dials,
	"neighbours": neighbours,
	"strangers":  strangers,
	"ports":      ports,
	"shouts":     shouts,
	"steers":     steers,
	"signals":    signals,
}

// unixSocket creates a socket at a path.
func unixSocket(args []string) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: args[0]})
	}
	if err != nil {
		fmt.Println("ODD: no socket:", err)
	}
}

// threads starts this many child processes at once and prints how many it got.
func threads(args []string) {
	want, _ := strconv.Atoi(args[0])
	got := 0
	for range want {
		p, err := os.StartProcess("/bin/sleep", []string{"sleep", "30"}, &os.ProcAttr{})
		if err != nil {
			break
		}
		defer p.Kill()
		got++
	}
	fmt.Println("processes:", got)
}
