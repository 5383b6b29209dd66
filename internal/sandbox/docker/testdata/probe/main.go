// Probe runs in the containers of the tests: a static program with a few
// commands, several in a row when "--" stands between them.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	for _, words := range split(os.Args[1:]) {
		if err := run(words[0], words[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func split(args []string) (out [][]string) {
	var words []string
	for _, a := range args {
		if a == "--" {
			out, words = append(out, words), nil
			continue
		}
		words = append(words, a)
	}
	return append(out, words)
}

func run(command string, args []string) error {
	switch command {
	case "exit":
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		os.Exit(code)
	case "block":
		signal.Reset()
		time.Sleep(time.Hour)
	case "deaf": // says so once it no longer hears SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf")
		time.Sleep(time.Hour)
	case "print":
		fmt.Print(args[0])
	case "warn":
		fmt.Fprint(os.Stderr, args[0])
	case "repeat": // text, times
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		for range n {
			fmt.Println(args[0])
		}
	case "hog":
		hog()
	case "hog-child": // the child dies of memory, this one goes on and ends well
		child := exec.Command("/probe", "hog")
		if err := child.Run(); err == nil {
			return fmt.Errorf("the child lived")
		}
		time.Sleep(500 * time.Millisecond) // an engine forgets a memory kill whose notice the exit overtakes
	case "write":
		return os.WriteFile(args[0], []byte(args[1]), 0o644)
	case "append":
		return appendTo(args[0], args[1])
	case "try-write": // prints instead of failing
		fmt.Printf("write %s: %v\n", args[0], os.WriteFile(args[0], nil, 0o644))
	case "cat":
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	case "remove":
		return os.RemoveAll(args[0])
	case "echo": // lines from the terminal until "bye"
		return echo()
	case "serve": // port, text
		return serve(args[0], args[1])
	case "dial": // addresses
		dial(args)
	case "lookup": // names
		for _, name := range args {
			addrs, err := net.LookupHost(name)
			fmt.Printf("lookup %s: %d %v\n", name, len(addrs), err)
		}
	default:
		return fmt.Errorf("unknown command %q", command)
	}
	return nil
}

func hog() {
	var kept [][]byte
	for {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		kept = append(kept, block)
		if len(kept) > 1<<14 {
			return
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func echo() error {
	buf := make([]byte, 256)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return err
		}
		line := strings.TrimSpace(string(buf[:n]))
		fmt.Printf("got %q\n", line)
		if line == "bye" {
			os.Exit(9)
		}
	}
}

func serve(port, text string) error {
	l, err := net.Listen("tcp4", "0.0.0.0:"+port)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		io.WriteString(c, text)
		c.Close()
	}
}

// dial prints what each address said: a connection alone proves nothing.
func dial(addrs []string) {
	said := make([]string, len(addrs))
	var all sync.WaitGroup
	for i, a := range addrs {
		all.Go(func() { said[i] = ask(a) })
	}
	all.Wait()
	for i, a := range addrs {
		fmt.Printf("%s said %q\n", a, said[i])
	}
}

func ask(addr string) string {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	text, _ := io.ReadAll(io.LimitReader(c, 100))
	return string(text)
}
