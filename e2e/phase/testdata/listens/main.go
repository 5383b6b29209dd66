// Command listens accepts connections at port 4000, as a database does.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	l, err := net.Listen("tcp", ":4000")
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			err = c.Close()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
