// Command agent-learner lets an agent solve a task in cycles and learn from each:
// `abl learn` as a separate program.
package main

import (
	"context"
	"os"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/learn"
)

// version is set when it is built (see the Makefile).
var version = "dev"

func main() {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	code := learn.Main(ctx, version, os.Args[1:], [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
