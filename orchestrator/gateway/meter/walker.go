package meter

import (
	"bytes"
	"strconv"
)

const (
	maxDepth  = 48 // deeper nothing is looked for
	maxKey    = 40 // longer keys are none of those looked for
	maxDigits = 18 // more do not fit and are no count of tokens
)

// unlike stands for a key that cannot be one of those looked for.
const unlike = "\x00"

// walker follows JSON that arrives in pieces and tells the whole numbers in it
// with the keys that lead to them. It judges nothing: in what is no JSON it finds
// nothing, or what looks alike.
type walker struct {
	number func(path []byte, n int64)
	object func(path []byte, open bool) // one begins or ends
	wanted func(path []byte) bool       // the text there is to be told
	words  func(path, text []byte)      // of such a text, or its beginning

	stack []level
	over  int    // levels open beyond maxDepth
	path  []byte // "/usage/total_tokens"
	state state
	key   bool   // the next string in this object is a key
	value bool   // what is read as a key is a text that is wanted
	text  []byte // of the key, number or text being read
	long  bool   // it is longer than what is looked for
}

type level struct {
	object bool
	path   int // length of the path that leads to it
}

type state int

const (
	between  state = iota // tokens
	inKey                 // strings that are keys are read
	inString              // others are passed over
	inNumber
	escaped // after a backslash in a string
	escapedKey
)

// reset forgets an unfinished document.
func (w *walker) reset() {
	w.stack, w.path, w.text = w.stack[:0], w.path[:0], w.text[:0]
	w.over, w.state, w.key, w.long = 0, between, false, false
}

// idle says whether no document is unfinished.
func (w *walker) idle() bool { return len(w.stack) == 0 && w.state == between }

func (w *walker) write(p []byte) {
	for len(p) > 0 {
		switch w.state {
		case inKey, inString:
			p = p[w.inText(p):]
		case escaped:
			w.state, p = inString, p[1:]
		case escapedKey:
			w.state, p = inKey, p[1:]
		case inNumber:
			if n := digits(p); n > 0 {
				w.add(p[:n])
				p = p[n:]
				continue
			}
			w.endNumber()
		default:
			w.token(p[0])
			p = p[1:]
		}
	}
}

// inText takes the rest of a string up to its end or a backslash, and returns
// how much that is.
func (w *walker) inText(p []byte) int {
	key := w.state == inKey
	end := endOfText(p)
	if key {
		w.add(p[:end])
	}
	if end == len(p) {
		return end
	}
	switch {
	case p[end] == '"':
		w.state = between
		if key {
			w.endKey()
		}
	case key: // no key that is looked for needs an escape
		w.state, w.long = escapedKey, true
	default:
		w.state = escaped
	}
	return end + 1
}

// endOfText finds a quote or a backslash. Text has either every few dozen
// bytes, so looking for both in short steps keeps one from being sought for
// again and again.
func endOfText(p []byte) int {
	const step = 64
	for from := 0; from < len(p); from += step {
		part := p[from:min(from+step, len(p))]
		quote := bytes.IndexByte(part, '"')
		if quote >= 0 {
			part = part[:quote]
		}
		if back := bytes.IndexByte(part, '\\'); back >= 0 {
			return from + back
		}
		if quote >= 0 {
			return from + quote
		}
	}
	return len(p)
}

func (w *walker) token(b byte) {
	switch b {
	case '"':
		w.state = inString
		if w.value = !w.key && w.over == 0 && w.wanted(w.path); w.over == 0 && (w.key || w.value) {
			w.state, w.text, w.long = inKey, w.text[:0], false
		}
	case '{', '[':
		w.open(b == '{')
	case '}', ']':
		w.close()
	case ',':
		w.key = w.inObject()
	case ':':
		w.key = false
	default:
		if b == '-' || b >= '0' && b <= '9' {
			w.state, w.text, w.long = inNumber, append(w.text[:0], b), false
		}
	}
}

func (w *walker) inObject() bool {
	return len(w.stack) > 0 && w.stack[len(w.stack)-1].object
}

func (w *walker) open(object bool) {
	if len(w.stack) == maxDepth {
		w.over++
		return
	}
	w.stack = append(w.stack, level{object, len(w.path)})
	w.key = object
	if object {
		w.object(w.path, true)
	} else {
		w.path = append(w.path, "/*"...)
	}
}

func (w *walker) close() {
	switch {
	case w.over > 0:
		w.over--
	case len(w.stack) > 0:
		last := len(w.stack) - 1
		ended := w.stack[last]
		w.path, w.stack, w.key = w.path[:ended.path], w.stack[:last], false
		if ended.object {
			w.object(w.path, false)
		}
	}
}

// add keeps a part of a key or number.
func (w *walker) add(p []byte) {
	if len(w.text)+len(p) > maxKey {
		w.long, p = true, p[:maxKey-len(w.text)]
	}
	w.text = append(w.text, p...)
}

func (w *walker) endKey() {
	if w.value {
		w.words(w.path, w.text)
		return
	}
	w.path = append(w.path[:w.stack[len(w.stack)-1].path], '/')
	if w.long || bytes.ContainsAny(w.text, "/*") { // which stand for something else in a path
		w.path = append(w.path, unlike...)
	} else {
		w.path = append(w.path, w.text...)
	}
}

func (w *walker) endNumber() {
	w.state = between
	if w.long || w.over > 0 || len(w.text) > maxDigits {
		return
	}
	if n, err := strconv.ParseInt(string(w.text), 10, 64); err == nil && n >= 0 {
		w.number(w.path, n)
	}
}

// digits counts the bytes with which p begins that belong to a number.
func digits(p []byte) int {
	for i, b := range p {
		if (b < '0' || b > '9') && b != '.' && b != 'e' && b != 'E' && b != '+' && b != '-' {
			return i
		}
	}
	return len(p)
}
