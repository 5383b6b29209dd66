package view

import (
	"io"

	"golang.org/x/term"
)

// descriptor is the file descriptor behind w, if w is a terminal.
func descriptor(w io.Writer) (int, bool) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// Columns is the width of the terminal behind w, 0 when there is none.
func Columns(w io.Writer) int {
	if _, ok := descriptor(w); !ok {
		return 0
	}
	return width(w)
}

// canSteer says whether the progress goes to a terminal that knows how to move
// its cursor.
func canSteer(o Options) bool {
	_, is := descriptor(o.Stderr)
	t := o.env("TERM")
	return is && t != "" && t != "dumb"
}

// colours says whether the progress may be coloured.
func colours(o Options) paint {
	return paint(canSteer(o) && o.env("NO_COLOR") == "")
}

func (o Options) env(name string) string {
	if o.Getenv == nil {
		return ""
	}
	return o.Getenv(name)
}

// width asks how many columns w has right now; a person may have changed it.
func width(w io.Writer) int {
	const usual = 80
	fd, ok := descriptor(w)
	if !ok {
		return usual
	}
	columns, _, err := term.GetSize(fd)
	if err != nil || columns <= 0 {
		return usual
	}
	return columns
}
