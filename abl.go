// Package abl embeds files: the templates of `abl init`, the settings schema and the demo.
// cmd/internal/scaffold writes the templates, and cmd/abl runs the demo.
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

// Template returns the content of .abl-template.
func Template() fs.FS { return below(".abl-template") }

// Demo returns the project that `abl demo` copies and runs: a link shortener in two phases, for the
// scripted agent.
func Demo() fs.FS { return below("examples/demo") }

func below(folder string) fs.FS {
	part, _ := fs.Sub(files, folder) // Sub fails only for an invalid name
	return part
}
