package view

import (
	"encoding/json"
	"errors"
	"io"
	"syscall"

	"abl/internal/state"
)

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
