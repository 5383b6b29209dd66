// Package meter reads out of a provider's answer, while it passes, how many tokens
// it used, how it ended, and what it says is wrong: the four APIs word the same few
// things in their own ways. An answer is hostile text, and what cannot be read tells
// nothing. So does an event, or an answer that is one piece, of more than a megabyte: no
// usage, no end and no error is read out of it, and what passed is all that counts.
// Nothing here knows of requests, budgets or connections.
package meter

import (
	"bytes"
	"encoding/json"
	"slices"

	"abl/internal/tokens"
)

// API is one provider's way of telling usage.
type API string

// The ways that are known.
const (
	Gemini    API = "gemini"
	Anthropic API = "anthropic"
	Responses API = "openai-responses"
	Chat      API = "openai-chat"
)

// frames are about how many bytes of an event are none of the answer's own.
var frames = map[API]int64{Gemini: 180, Anthropic: 120, Responses: 300, Chat: 300}

const (
	bytesPerToken = 4
	dataField     = "data:"
	// longest is of one event or document, in bytes; a longer one tells nothing.
	longest = 1 << 20
)

// Meter takes an answer in pieces of any size: one JSON document, a list of them, or
// server-sent events.
type Meter struct {
	api    API
	begun  bool
	stream bool   // of events
	part   []byte // the line that has begun, or the documents so far
	data   []byte // of the event that has begun

	usage   tokens.Count
	first   *int64 // output tokens that Anthropic's first event reports
	finish  string // how the answer ended
	firm    bool   // and nothing says otherwise any more
	ends    int    // how often it reported an end
	calls   bool   // it calls a tool
	failure failure

	long   bool // what has begun is too long to be read
	unread bool // an event or document was too long
	broken bool // an event is not JSON
	torn   bool // the end of the answer is not JSON

	bytes, events int64 // that went by
}

// New returns a meter for an answer of the API. An unknown API tells nothing.
func New(api API) *Meter { return &Meter{api: api} }

// Write takes the next piece; it never fails.
func (m *Meter) Write(p []byte) (int, error) {
	n := len(p)
	m.bytes += int64(n)
	m.events += int64(bytes.Count(p, []byte(dataField)))
	if !m.begun {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 {
			return n, nil
		}
		m.begun, m.stream = true, p[0] != '{' && p[0] != '[' // servers mislabel
	}
	for m.stream {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if !whole {
			break
		}
		if len(m.part) > 0 {
			line = m.gather(m.part, line)
		}
		m.line(line)
		m.part, p = m.part[:0], rest
	}
	m.part = m.gather(m.part, p)
	return n, nil
}

// gather appends p up to the longest text that is read.
func (m *Meter) gather(to, p []byte) []byte {
	room := longest - len(to)
	m.long = m.long || len(p) > room
	return append(to, p[:min(len(p), room)]...)
}

// line takes a line of a stream of events; an empty one ends an event.
func (m *Meter) line(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if data, found := bytes.CutPrefix(line, []byte(dataField)); found {
		m.data = m.gather(m.data, data)
	} else if len(line) == 0 {
		m.event(&m.broken)
	}
}

// telling are words of which an event has one that says anything of usage, of the end, of a
// tool or of an error. Most have none and are not read.
var telling = [][]byte{
	[]byte("usage"), []byte("finish"), []byte("stop_reason"), []byte("blockReason"), []byte("status"), []byte("refusal"), []byte("error"),
	[]byte("response.completed"), []byte("response.incomplete"), []byte("response.failed"),
	[]byte("tool_use"), []byte("tool_calls"),
}

// event reads the event that has ended. It sets bad if the event is not JSON.
func (m *Meter) event(bad *bool) {
	data, long := bytes.TrimSpace(m.data), m.long
	m.data, m.long = m.data[:0], false
	switch {
	case long:
		m.unread = true
	case len(data) == 0 || string(data) == "[DONE]":
	case !json.Valid(data):
		*bad = true
	case slices.ContainsFunc(telling, func(word []byte) bool { return bytes.Contains(data, word) }):
		m.readPart(data)
	}
}

// settle takes up what no line break or bracket has ended.
func (m *Meter) settle() {
	part := m.part
	m.part = nil
	switch {
	case m.stream:
		if data, found := bytes.CutPrefix(part, []byte(dataField)); found {
			m.data = m.gather(m.data, data)
		}
		m.event(&m.torn)
	case len(part) == 0:
	case m.long:
		m.long, m.unread = false, true
	case part[0] == '[':
		// Of a list that is cut, those that are whole are read.
		m.torn = m.torn || Values(part, '[', func(_ string, one []byte) error {
			m.readPart(one)
			return nil
		}) != nil
	case json.Valid(part):
		m.read(part)
	default:
		m.torn = true
	}
}

// Broken reports whether the answer holds an event that is not JSON. whole is set if the
// answer ended by itself: then its last event or document has to be JSON too.
func (m *Meter) Broken(whole bool) bool {
	m.settle()
	return m.broken || whole && m.torn
}

// Unread reports whether something was too long to be read, which may have been the end.
func (m *Meter) Unread() bool {
	m.settle()
	return m.unread
}

// HasEvents reports whether the answer is a stream with at least one event.
func (m *Meter) HasEvents() bool { return m.stream && m.events > 0 }

// Passed is about how many tokens went by of an answer that may never tell its usage: a
// client can leave before it would, and OpenAI's clients need not ask for it at all. It is
// one for each event, and one for each four bytes that an event has beyond its usual frame.
func (m *Meter) Passed() int64 {
	return m.events + max(m.bytes-m.events*frames[m.api], 0)/bytesPerToken
}
