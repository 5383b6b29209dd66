// Command attacker does in a container what a shell cannot: it makes the system
// calls that lead out of one, each of which has to be refused.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// refused are the answers of a kernel that does not let a process do a thing.
// EFAULT or EINVAL would mean that it was let in and only asked badly.
var refused = []error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EROFS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT}

func main() {
	if len(os.Args) < 2 {
		fmt.Println("ODD: attacker GROUP [ARGUMENT…]")
		os.Exit(2)
	}
	if f, ok := programs[os.Args[1]]; ok {
		f(os.Args[2:])
		return
	}
	for _, name := range strings.Split(os.Args[1], ",") {
		try, ok := calls[name]
		if !ok {
			fmt.Println("ODD: no attack", name)
			continue
		}
		report(name, try())
	}
}

func report(name string, err error) {
	switch {
	case err == nil:
		fmt.Println("HOLE:", name, "worked")
	case is(err, refused):
		fmt.Println("held:", name, err)
	default:
		fmt.Println("ODD:", name, err)
	}
}

func is(err error, any []error) bool {
	for _, e := range any {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
