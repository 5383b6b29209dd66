// Command abl-gateway is the sidecar between a role and the providers, with the keys. It takes no
// arguments and reads no environment variables: its setup comes on standard input
// (internal/gateway/setup.go).
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

	// The container has 128 MiB, and little memory is live at any time. So the garbage collector runs
	// rarely until about half of the memory is used.
	memory = 72 << 20
	growth = 400 // percent
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 {
		fmt.Fprintln(os.Stderr, "abl-gateway: takes no arguments; it reads its settings from standard input")
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
