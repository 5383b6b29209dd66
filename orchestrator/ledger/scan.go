package ledger

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
)

// Foreign says that a file is not a ledger at all, so that nothing in it can be
// counted and nothing may be written to it.
type Foreign struct{ Reason string }

// Error gives the reason.
func (f *Foreign) Error() string { return f.Reason }

// Scan reads a ledger as a stream, in constant memory. each gets every row that
// is understood, bad the number of every other line and the reason; neither
// stops the reading. A row of the same call, model and source as one shortly
// before is bad: a repeated append must not be counted twice. An empty file has
// no rows. The error is a *Foreign, or that of r.
func Scan(r io.Reader, each func(Row), bad func(line int, reason string)) error {
	return scan(newLines(r), func(row Row, _ []byte) { each(row) }, func(line int, _ []byte, reason string) { bad(line, reason) })
}

// scan is Scan with the lines as they stand in the file.
func scan(l *lines, each func(Row, []byte), bad func(line int, text []byte, reason string)) error {
	p, err := header(l)
	if err != nil || p == nil {
		return err
	}
	seen := newMemory()
	for {
		switch err := l.next(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case l.torn:
			bad(l.no, l.text, "it is cut off: it has no line end")
			continue
		case l.long:
			bad(l.no, l.text, fmt.Sprintf("it is longer than %d bytes", maxLine))
			continue
		case len(l.text) == 0:
			continue
		}
		row, err := p.row(l.text)
		if err != nil {
			bad(l.no, l.text, err.Error())
		} else if first := seen.line(row, l.no); first > 0 {
			bad(l.no, l.text, fmt.Sprintf("it repeats line %d, the same call and model", first))
		} else {
			each(row, l.text)
		}
	}
}

// header reads the first line; of an empty file it returns nil.
func header(l *lines) (*parser, error) {
	switch err := l.next(); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case l.long:
		return nil, &Foreign{fmt.Sprintf("its first line is longer than %d bytes", maxLine)}
	}
	layout, err := layoutOf(string(l.text))
	if err != nil {
		return nil, &Foreign{err.Error()}
	}
	return &parser{layout: layout}, nil
}

// remembered is how many rows back a repetition is found. An append that was
// done twice leaves its rows next to each other.
const remembered = 256

// memory knows the keys of the last rows.
type memory struct {
	seed  maphash.Seed
	lines map[uint64]int
	ring  [remembered]uint64
	next  int
}

func newMemory() *memory {
	return &memory{seed: maphash.MakeSeed(), lines: make(map[uint64]int, remembered)}
}

// line returns the line on which a row with the same key stood, 0 for none.
func (m *memory) line(r Row, no int) int {
	if r.CallID == "" {
		return 0
	}
	key := maphash.Comparable(m.seed, keyOf(r))
	if first := m.lines[key]; first > 0 {
		return first
	}
	delete(m.lines, m.ring[m.next])
	m.ring[m.next], m.lines[key] = key, no
	m.next = (m.next + 1) % remembered
	return 0
}

// key tells rows apart: a call has one for each model and for each that counted.
type key struct{ call, model, source string }

func keyOf(r Row) key { return key{r.CallID, r.Model, r.Source} }
