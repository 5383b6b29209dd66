// Package meter reads out of a provider's answer, while it passes, how many tokens
// it used, how it ended, and what it says is wrong: the four APIs word the same few
// things in their own ways. An answer is hostile text, and what cannot be read tells
// nothing. So does an event, or an answer that is one piece, of more than a megabyte: no
// usage, no end and no error is read out of it, and what passed is all that counts.
// Nothing here knows of requests, budgets or connections.
package meter

import (
	"bytes"
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
	finish  string // how the answer ended
	firm    bool   // and nothing says otherwise any more
	failure failure

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
			line = gather(m.part, line)
		}
		m.line(line)
		m.part, p = m.part[:0], rest
	}
	m.part = gather(m.part, p)
	return n, nil
}

// gather appends to what is kept, of which too much is cut off and then no JSON.
func gather(to, p []byte) []byte { return append(to, p[:min(len(p), longest-len(to))]...) }

// line takes a line of a stream of events; an empty one ends an event.
func (m *Meter) line(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if data, found := bytes.CutPrefix(line, []byte(dataField)); found {
		m.data = gather(m.data, data)
	} else if len(line) == 0 {
		m.event()
	}
}

// telling are words of which an event has one that says anything of usage, of the end or of
// an error. Most have none and are not read.
var telling = [][]byte{
	[]byte("usage"), []byte("finish"), []byte("stop_reason"), []byte("blockReason"), []byte("status"), []byte("refusal"), []byte("error"),
}

func (m *Meter) event() {
	data := bytes.TrimSpace(m.data)
	m.data = m.data[:0]
	if len(data) == 0 || string(data) == "[DONE]" {
		return
	}
	m.failure = failure{} // it was not the end
	if slices.ContainsFunc(telling, func(word []byte) bool { return bytes.Contains(data, word) }) {
		m.read(data)
	}
}

// settle takes up what no line break or bracket has ended.
func (m *Meter) settle() {
	part := m.part
	m.part = nil
	if m.stream {
		m.line(part)
		m.event()
		return
	}
	if !bytes.HasPrefix(part, []byte("[")) {
		m.read(part)
		return
	}
	// Of a list that is cut, those that are whole are read.
	_ = Values(part, '[', func(_ string, one []byte) error {
		m.failure = failure{}
		m.read(one)
		return nil
	})
}

// Passed is about how many tokens went by of an answer that may never tell its usage: a
// client can leave before it would, and OpenAI's clients need not ask for it at all. It is
// one for each event, and one for each four bytes that an event has beyond its usual frame.
func (m *Meter) Passed() int64 {
	return m.events + max(m.bytes-m.events*frames[m.api], 0)/bytesPerToken
}
