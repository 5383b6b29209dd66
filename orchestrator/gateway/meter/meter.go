// Package meter reads out of a provider's answer, while it passes, how many
// tokens it used. It keeps none of the answer: whatever its length, a Meter is a
// few hundred bytes.
package meter

import "bytes"

// API is one provider's way of telling usage.
type API string

// The ways that are known.
const (
	Gemini    API = "gemini"
	Anthropic API = "anthropic"
	Responses API = "openai-responses"
	Chat      API = "openai-chat"
)

// Meter takes an answer in pieces of any size: one JSON document, an array of
// them, or server-sent events.
type Meter struct {
	api   API
	feed  func(p []byte) // nil until the first byte has told which
	walk  walker
	lines events
	found [fields]count
	last  [fields]count // of the last record that was whole
	open  bool          // a record that will replace it is not yet whole

	finish string // how the answer ended
	firm   bool   // and nothing says otherwise any more

	passed passing
}

// count is a number that may not have been told.
type count struct {
	n     int64
	known bool
}

// New returns a meter for an answer of the API. An unknown API tells nothing.
func New(api API) *Meter {
	m := &Meter{api: api}
	m.walk.number = m.take
	m.walk.object = m.record
	m.walk.wanted, m.walk.words = m.wanted, m.tell
	m.lines.walk, m.lines.telling = &m.walk, telling[api]
	return m
}

// Write takes the next piece; it never fails.
func (m *Meter) Write(p []byte) (int, error) {
	m.passed.note(p)
	if m.feed == nil {
		m.detect(p)
	}
	if m.feed != nil {
		m.feed(p)
	}
	return len(p), nil
}

// detect goes by the first byte that is no space, because servers mislabel.
func (m *Meter) detect(p []byte) {
	p = bytes.TrimLeft(p, " \t\r\n")
	switch {
	case len(p) == 0:
	case p[0] == '{' || p[0] == '[':
		m.feed = m.walk.write
	default:
		m.feed = m.lines.write
	}
}

// take notes a number at a path that tells usage.
func (m *Meter) take(path []byte, n int64) {
	if f, ok := places[m.api][string(path)]; ok {
		m.found[f] = count{n, true}
	}
}

// record notes that a record begins that replaces the ones before, or that it is
// whole. An answer that is cut in the middle of one has the record before.
func (m *Meter) record(path []byte, open bool) {
	if !whole[m.api][string(path)] {
		return
	}
	if open && !m.open { // else the one before was never whole
		m.last = m.found
	}
	if m.open = open; open {
		m.found = [fields]count{}
	}
}

// told is the number that counts.
func (m *Meter) told(f field) count {
	if m.open {
		return m.last[f]
	}
	return m.found[f]
}
