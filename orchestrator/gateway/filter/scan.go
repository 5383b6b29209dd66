package filter

import "bytes"

// maxNesting is how deep a body may nest. Agents' do so a dozen times, and a stack is
// all that reading costs.
const maxNesting = 500

// scan reads a JSON text once, as strictly as encoding/json and several times as
// fast: every request of an agent is its whole conversation so far.
type scan struct {
	text   []byte
	at     int
	member func(key, value []byte) // of the outermost object
}

// document reads an object with nothing but space around it.
func (s *scan) document() bool {
	s.space()
	if s.next() != '{' || !s.value(0) {
		return false
	}
	s.space()
	return s.at == len(s.text)
}

// next is the byte to be read; 0, which is nowhere right, is the end.
func (s *scan) next() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scan) space() {
	for b := s.next(); b == ' ' || b == '\n' || b == '\r' || b == '\t'; b = s.next() {
		s.at++
	}
}

// take reads one byte if it is b.
func (s *scan) take(b byte) bool {
	if s.next() != b {
		return false
	}
	s.at++
	return true
}

func (s *scan) value(depth int) bool {
	switch b := s.next(); {
	case depth > maxNesting:
		return false
	case b == '"':
		return s.string()
	case b == '{':
		return s.list('}', func() bool { return s.pair(depth) })
	case b == '[':
		return s.list(']', func() bool { return s.value(depth + 1) })
	case b == '-' || isDigit(b):
		return s.number()
	}
	return s.word("true") || s.word("false") || s.word("null")
}

// list reads what stands between brackets, with commas between.
func (s *scan) list(end byte, one func() bool) bool {
	s.at++
	if s.space(); s.take(end) {
		return true
	}
	for {
		if s.space(); !one() {
			return false
		}
		if s.space(); s.take(end) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// pair reads a key and its value.
func (s *scan) pair(depth int) bool {
	from := s.at
	if s.next() != '"' || !s.string() {
		return false
	}
	key := s.text[from:s.at]
	if s.space(); !s.take(':') {
		return false
	}
	s.space()
	from = s.at
	if !s.value(depth + 1) {
		return false
	}
	if depth == 0 && s.member != nil {
		s.member(key, s.text[from:s.at])
	}
	return true
}

// plain are the bytes of a string that stand for themselves.
var plain = func() (is [256]bool) {
	for b := range is {
		is[b] = b >= ' ' && b != '"' && b != '\\'
	}
	return is
}()

func (s *scan) string() bool {
	for s.at++; ; s.at++ {
		for _, b := range s.text[s.at:] {
			if !plain[b] {
				break
			}
			s.at++
		}
		if s.take('"') {
			return true
		}
		if s.next() != '\\' || !s.escape() {
			return false
		}
	}
}

// escape reads up to the last byte of what a backslash begins.
func (s *scan) escape() bool {
	s.at++
	if s.next() != 'u' {
		return s.next() != 0 && bytes.IndexByte([]byte(`"\/bfnrt`), s.next()) >= 0
	}
	for range 4 {
		s.at++
		if b := s.next(); !isDigit(b) && (b|0x20 < 'a' || b|0x20 > 'f') {
			return false
		}
	}
	return true
}

func (s *scan) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		_ = s.take('+') || s.take('-')
		return s.digits()
	}
	return true
}

func (s *scan) digits() bool {
	from := s.at
	for isDigit(s.next()) {
		s.at++
	}
	return s.at > from
}

func (s *scan) word(w string) bool {
	if !bytes.HasPrefix(s.text[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
