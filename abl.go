// Package abl carries what `abl init` writes into a new project, and the demo. It holds
// files: what is written where is decided in cmd/internal/scaffold, and how the demo is
// played in cmd/abl.
package abl

import (
	"embed"
	"io/fs"
)

//go:embed all:.abl-template all:examples/demo
var files embed.FS

// ConfigSchema is the JSON Schema of .abl/config.yaml, for editors.
//
//go:embed docs/config.schema.json
var ConfigSchema []byte

// Template is the content of .abl-template; package cmd/internal/scaffold knows
// how it is laid out.
func Template() fs.FS { return below(".abl-template") }

// Demo is the project that `abl demo` copies and runs: a link shortener in two
// phases, played by the scripted agent.
func Demo() fs.FS { return below("examples/demo") }

func below(folder string) fs.FS {
	part, _ := fs.Sub(files, folder) // the name is valid, which is all that Sub checks
	return part
}
