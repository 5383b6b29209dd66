package meter

import "bytes"

// events finds the data of server-sent events and hands it on.
type events struct {
	walk *walker
	at   place
	seen int // bytes of the line so far, while that matters
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
				if p = afterEvent(p); len(p) == 0 {
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

// afterEvent passes over the whole events with which p begins that say nothing of
// usage, which is most of them. What is not whole has to be walked.
func afterEvent(p []byte) []byte {
	for {
		end := bytes.Index(p, []byte("\n\n"))
		if crlf := bytes.Index(p[:max(end, 0)], []byte("\n\r\n")); end < 0 {
			end = bytes.Index(p, []byte("\n\r\n"))
		} else if crlf >= 0 {
			end = crlf
		}
		if end < 0 || bytes.Contains(p[:end], []byte(`"usage`)) {
			return p
		}
		p = p[end+1:]
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
