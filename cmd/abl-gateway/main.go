// Command abl-gateway is the sidecar between a role and the providers: it holds
// the keys. It takes no argument and reads no variable; everything comes on
// standard input, as internal/gateway/setup.go describes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"abl/internal/gateway"
)

const (
	exitUnable = 1
	exitUsage  = 2

	// The container has 128 MiB. Little is alive at any time, so the collector may
	// be lazy until about half of that is taken.
	memory = 72 << 20
	growth = 400 // percent
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 {
		fmt.Fprintln(os.Stderr, "abl-gateway: takes no arguments; what it has to know comes on standard input")
		return exitUsage
	}
	debug.SetMemoryLimit(memory)
	debug.SetGCPercent(growth)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := (gateway.Process{In: os.Stdin, Out: os.Stdout}).Run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "abl-gateway: %v\n", err)
		return exitUnable
	}
	return 0
}
