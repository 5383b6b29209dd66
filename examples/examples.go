// Package examples carries the project that `abl demo` copies and runs. It holds files,
// and knows nothing of how they are played.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:demo
var files embed.FS

// Demo is the project that `abl demo` copies and runs: a link shortener in two
// phases, played by the scripted agent.
func Demo() fs.FS {
	demo, err := fs.Sub(files, "demo")
	if err != nil {
		panic("internal error: " + err.Error()) // the name is valid, which is all that Sub checks
	}
	return demo
}
