package challenge

import (
	"bytes"
	"encoding/json"
)

// maxDepth is how deeply nested JSON may be to be changed.
const maxDepth = 200

// span is a piece of a document, from its first byte to the one behind its last.
type span struct{ from, to int }

func (s span) in(data []byte) []byte { return data[s.from:s.to] }

// listed are the first and last parts of an array or object.
type listed struct {
	from           int // of the bracket
	n              int
	first, last    span
	second, beside int // where the second part begins, and the last but one ends
}

func (l *listed) add(s span) {
	switch l.n++; l.n {
	case 1:
		l.first = s
	case 2:
		l.second = s.from
	}
	l.beside, l.last = l.last.to, s
}

// found is what may be changed in a document; what has no to is not there.
type found struct {
	number, text, truth, scalar span   // the last of each kind
	object                      listed // the outermost first one that is not empty
	array                       listed // likewise
	swap                        listed // likewise, whose first and last differ
}

// walker goes through a document that is valid.
type walker struct {
	data []byte
	at   int
	deep bool
	found
}

// look finds what may be changed; ok is false for what is no JSON, or too deep.
func look(data []byte) (found, bool) {
	if !json.Valid(data) {
		return found{}, false
	}
	w := &walker{data: data}
	w.space()
	w.value(0)
	return w.found, !w.deep
}

func (w *walker) space() {
	for w.at < len(w.data) && bytes.IndexByte([]byte(" \t\r\n"), w.data[w.at]) >= 0 {
		w.at++
	}
}

// value takes a value and returns where it stands.
func (w *walker) value(depth int) span {
	s := span{from: w.at}
	if depth > maxDepth {
		w.deep, w.at = true, len(w.data)
		return s
	}
	switch c := w.data[w.at]; c {
	case '{', '[':
		w.list(depth, c == '{')
		return span{s.from, w.at}
	case '"':
		w.quoted()
		s.to = w.at
		w.text = s
	default:
		for w.at < len(w.data) && bytes.IndexByte([]byte(",]} \t\r\n"), w.data[w.at]) < 0 {
			w.at++
		}
		s.to = w.at
		switch c {
		case 't', 'f':
			w.truth = s
		case 'n':
			return s // null is what it would be changed to
		default:
			w.number = s
		}
	}
	w.scalar = s
	return s
}

func (w *walker) quoted() {
	for w.at++; w.data[w.at] != '"'; w.at++ {
		if w.data[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
}

// list takes an object or an array.
func (w *walker) list(depth int, object bool) {
	l := listed{from: w.at}
	w.at++
	for w.space(); !w.deep && w.data[w.at] != '}' && w.data[w.at] != ']'; w.space() {
		if w.data[w.at] == ',' {
			w.at++
			w.space()
		}
		from := w.at
		if object {
			w.quoted()
			w.space()
			w.at++ // the colon
			w.space()
		}
		w.value(depth + 1)
		l.add(span{from, w.at})
	}
	w.at = min(w.at+1, len(w.data))
	switch {
	case object:
		w.object = outermost(w.object, l, l.n > 0)
	default:
		w.array = outermost(w.array, l, l.n > 0)
		w.swap = outermost(w.swap, l, l.n > 1 && !bytes.Equal(l.first.in(w.data), l.last.in(w.data)))
	}
}

// outermost keeps the one that begins first; inner ones are found before outer ones.
func outermost(old, l listed, fits bool) listed {
	if fits && (old.n == 0 || l.from < old.from) {
		return l
	}
	return old
}
