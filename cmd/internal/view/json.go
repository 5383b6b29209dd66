package view

import (
	"encoding/json"
	"io"

	"abl/orchestrator/event"
)

// jsonLines prints each event as one line with one write, so that lines of
// several writers do not mix.
type jsonLines struct {
	out  io.Writer
	gone bool // the reader left
}

func (j *jsonLines) show(e event.Event) {
	if j.gone || e.Kind == stopping {
		return
	}
	if line, err := json.Marshal(e); err == nil {
		_, err = j.out.Write(append(line, '\n'))
		j.gone = err != nil
	}
}

func (*jsonLines) tick()  {}
func (*jsonLines) close() {}
