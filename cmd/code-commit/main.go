// Command code-commit asks a model for a change, applies its answer, builds, and
// asks for repairs while the build fails. docs/code-commit.md describes it.
package main

import (
	"context"
	"os"

	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
)

// version is set when code-commit is built (see the Makefile).
var version = "dev"

func main() {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	code := commit.Main(ctx, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
