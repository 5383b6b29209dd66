// Command attacker makes the attacks that a shell cannot make: system calls that lead out of a
// container, each of which must be refused.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// refused lists the errors of a kernel that denies access. EFAULT or EINVAL would mean that it
// permits the call and only the arguments are wrong.
var refused = []error{
	unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EROFS, unix.EAFNOSUPPORT,
	unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT,
}

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
