package view

import (
	"fmt"
	"io"
	"strings"

	"abl/internal/redact"
)

// The values of --progress. Auto is TTY on a terminal and Plain elsewhere.
const (
	Auto  = "auto"
	TTY   = "tty"
	Plain = "plain"
	JSON  = "json"
)

// Modes are the values of --progress.
func Modes() []string { return []string{Auto, TTY, Plain, JSON} }

// Options say what is shown and where.
type Options struct {
	Progress string // one of Modes; "" is Auto
	// JSON prints events on Stdout, and progress only where Progress asks for it.
	JSON   bool
	Stdout io.Writer         // takes the events, which the view makes safe by itself
	Stderr io.Writer         // takes the progress, likewise
	Safe   *redact.Sanitizer // knows what nobody may see
}

// choose picks the painters.
func choose(o Options) ([]painter, error) {
	var all []painter
	if o.JSON || o.Progress == JSON {
		all = append(all, &jsonLines{out: o.Stdout})
	}
	switch o.Progress {
	case JSON:
	case "", Auto:
		switch {
		case o.JSON:
		case canSteer(o.Stderr):
			all = append(all, newLive(o))
		default:
			all = append(all, newPlain(o))
		}
	case TTY:
		all = append(all, newLive(o))
	case Plain:
		all = append(all, newPlain(o))
	default:
		return nil, fmt.Errorf("cannot show progress as %q: it is one of %s", o.Progress, strings.Join(Modes(), ", "))
	}
	return all, nil
}
