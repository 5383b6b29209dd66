package meter

import "bytes"

// events finds the data of server-sent events and hands it on.
type events struct {
	walk    *walker
	telling []string // see telling
	at      place
	seen    int // bytes of the line so far, while that matters
}

// place is where in a line the next byte is.
type place int

const (
	begin place = iota // in what may be the field name "data:"
	data
	other // in a line that holds no data
)

const fieldName = "data:"

func (e *events) write(p []byte) {
	for len(p) > 0 {
		switch e.at {
		case begin:
			if e.seen == 0 && e.walk.idle() {
				if p = afterEvents(p, e.telling); len(p) == 0 {
					return
				}
			}
			e.name(p[0])
			p = p[1:]
		default:
			p = e.rest(p)
		}
	}
}

// afterEvents passes over the whole events with which p begins that say nothing of
// usage or of the end, which is most of them. The others have to be walked.
func afterEvents(p []byte, telling []string) []byte {
	quiet := p
	for _, word := range telling {
		if at := bytes.Index(quiet, []byte(word)); at >= 0 {
			quiet = quiet[:at]
		}
	}
	for end := len(quiet); ; {
		end = bytes.LastIndexByte(quiet[:end], '\n')
		if end < 1 {
			return p
		}
		if quiet[end-1] == '\n' || end > 1 && quiet[end-1] == '\r' && quiet[end-2] == '\n' {
			return p[end+1:]
		}
	}
}

// name takes one byte at the beginning of a line.
func (e *events) name(b byte) {
	switch {
	case b == '\n':
		if e.seen == 0 { // an empty line ends the event
			e.walk.reset()
		}
		e.seen = 0
	case b == '\r': // part of the line's end
	case b == fieldName[e.seen]:
		if e.seen++; e.seen == len(fieldName) {
			e.at = data
		}
	default:
		e.at = other
	}
}

// rest takes what p has of the line and returns what follows.
func (e *events) rest(p []byte) []byte {
	end := bytes.IndexByte(p, '\n')
	line := p
	if end >= 0 {
		line = p[:end]
	}
	if e.at == data {
		e.walk.write(line)
	}
	if end < 0 {
		return nil
	}
	e.at, e.seen = begin, 0
	return p[end+1:]
}
