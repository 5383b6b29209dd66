package view

import (
	"io"
	"os"
)

// Coloured says whether what is written to w should be in colours.
func Coloured(w io.Writer) bool { return bool(colours(Options{Stderr: w, Getenv: os.Getenv})) }
