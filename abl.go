// Package abl carries what `abl init` writes into a new project. What is written where
// is decided in cmd/internal/scaffold.
package abl

import (
	"embed"
	"io/fs"
)

//go:embed all:.abl-template
var files embed.FS

// Template is the content of .abl-template; package cmd/internal/scaffold knows
// how it is laid out.
func Template() fs.FS {
	template, err := fs.Sub(files, ".abl-template")
	if err != nil {
		panic("internal error: " + err.Error()) // the name is valid, which is all that Sub checks
	}
	return template
}
