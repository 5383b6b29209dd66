package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"abl/internal/redact"
	"abl/internal/state"
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

// jsonLines prints each event as one line with one write, so that lines of
// several writers do not mix.
type jsonLines struct {
	out  io.Writer
	gone bool // the reader left
	torn bool // the last line is there in part
}

func (j *jsonLines) show(e state.Event) {
	if j.gone || e.Kind == stopping {
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	line = append(line, '\n')
	if j.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := j.out.Write(line)
	j.torn = err != nil && (j.torn || n > 0)
	j.gone = err != nil && !full(err)
}

// full is whether there may be room again later on.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, io.ErrShortWrite)
}

func (*jsonLines) tick()  {}
func (*jsonLines) close() {}

// between is how long plain lines are silent about an agent's actions after one.
const between = 5 * time.Second

// plainLines prints one line a fact, and now and then what the agent does.
type plainLines struct {
	out   io.Writer
	gone  bool // the reader left
	story story
	acted time.Time // of the last action that was shown
}

func newPlain(o Options) *plainLines { return &plainLines{out: o.Stderr} }

func (p *plainLines) show(e state.Event) {
	p.story.take(e)
	switch {
	case p.story.refused: // the command's own error says it
		return
	case e.Kind != state.Action:
	case p.story.actions > 1 && e.Time.Sub(p.acted) < between:
		return
	default:
		p.acted = e.Time
	}
	if !p.gone {
		_, err := io.WriteString(p.out, line(words(e, &p.story), p.story.elapsed(e.Time), noPaint)+"\n")
		p.gone = err != nil && !full(err)
	}
}

func (*plainLines) tick()  {}
func (*plainLines) close() {}

// head is how many columns stand before the words of a fact.
const head = 20

// line is a fact as plain and live views print it: when, who, what. A > marks
// the words of an agent.
func line(f fact, at time.Duration, c paint) string {
	mark := " "
	if f.agent {
		mark = ">"
	}
	return c.in(quiet, fmt.Sprintf("%7s", clock(at))) + fmt.Sprintf("  %-8s %s ", f.who, mark) + c.in(f.tone, f.text)
}
