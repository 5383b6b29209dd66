// Package meter reads the usage, the finish reason and the error of a provider's response while it is
// relayed, for each of the four APIs. A response is hostile text, and the package ignores every part
// that it cannot read. It also ignores an event, or a whole response in one document, of more than a
// megabyte: then only its size counts.
package meter

import (
	"bytes"
	"encoding/json"
	"slices"

	"abl/internal/usage"
)

// API is the HTTP API of a provider.
type API string

// The supported APIs.
const (
	Gemini    API = "gemini"
	Anthropic API = "anthropic"
	Responses API = "openai-responses"
	Chat      API = "openai-chat"
)

// frames is the approximate protocol overhead per event, in bytes.
var frames = map[API]int64{Gemini: 180, Anthropic: 120, Responses: 300, Chat: 300}

const (
	bytesPerToken = 4
	dataField     = "data:"
	// longest is the default of Meter.Longest.
	longest = 1 << 20
)

// Meter reads a response in pieces of any size: a JSON document, a list of documents, or server-sent
// events.
type Meter struct {
	// Each gets every event that is a JSON document, if it is not nil.
	Each func(event []byte)
	// Longest is the maximum size of an event or document, in bytes. A longer one is ignored.
	Longest int

	api    API
	begun  bool
	stream bool   // of events
	part   []byte // the incomplete line, or the documents so far
	data   []byte // of the incomplete event

	usage   usage.Count
	first   *int64 // output tokens that Anthropic's first event reports
	finish  string // the finish reason
	final   bool   // the finish reason is final
	ends    int    // the number of finish reasons
	calls   bool   // the response calls a tool
	failure failure

	long   bool // the incomplete part is too long
	unread bool // an event or document was too long
	done   bool // the last event of OpenAI's Chat API has arrived
	broken bool // an event is not JSON
	torn   bool // the end of the response is not JSON

	bytes, events int64 // so far
}

// New returns a meter for a response of the API. It reads nothing from an unknown API.
func New(api API) *Meter { return &Meter{api: api, Longest: longest} }

// Write reads the next piece. It never fails.
func (m *Meter) Write(p []byte) (int, error) {
	n := len(p)
	m.bytes += int64(n)
	m.events += int64(bytes.Count(p, []byte(dataField)))
	if !m.begun {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 {
			return n, nil
		}
		m.begun, m.stream = true, p[0] != '{' && p[0] != '[' // the content type is often wrong
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

// gather appends p up to the maximum size.
func (m *Meter) gather(to, p []byte) []byte {
	room := m.Longest - len(to)
	m.long = m.long || len(p) > room
	return append(to, p[:min(len(p), room)]...)
}

// line reads a line of a stream of events. An empty line ends an event.
func (m *Meter) line(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if data, found := bytes.CutPrefix(line, []byte(dataField)); found {
		m.data = m.gather(m.data, data)
	} else if len(line) == 0 {
		m.event(&m.broken)
	}
}

// keywords occur in every event with usage, a finish reason, a tool call or an error. Most events have
// none of them and are not read.
var keywords = [][]byte{
	[]byte("usage"), []byte("finish"), []byte("stop_reason"), []byte("blockReason"), []byte("status"), []byte("refusal"), []byte("error"),
	[]byte("response.completed"), []byte("response.incomplete"), []byte("response.failed"),
	[]byte("tool_use"), []byte("tool_calls"),
}

// event reads a complete event. It sets bad if the event is not JSON.
func (m *Meter) event(bad *bool) {
	data, long := bytes.TrimSpace(m.data), m.long
	m.data, m.long = m.data[:0], false
	switch {
	case long:
		m.unread = true
	case len(data) == 0:
	case string(data) == "[DONE]":
		m.done = true
	case !json.Valid(data):
		*bad = true
	default:
		if m.Each != nil {
			m.Each(data)
		}
		if slices.ContainsFunc(keywords, func(word []byte) bool { return bytes.Contains(data, word) }) {
			m.readPart(data)
		}
	}
}

// flush reads the incomplete part at the end of the response.
func (m *Meter) flush() {
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
		// Of a cut list, the complete documents are read.
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

// Broken reports whether the response contains an event that is not JSON. With whole, the provider
// ended the response, and its last event or document must be JSON too.
func (m *Meter) Broken(whole bool) bool {
	m.flush()
	return m.broken || whole && m.torn
}

// Unread reports whether a part was too long to read. It may have been the end.
func (m *Meter) Unread() bool {
	m.flush()
	return m.unread
}

// Done reports whether the event has arrived after which OpenAI's Chat API sends no other.
func (m *Meter) Done() bool { return m.done }

// HasEvents reports whether the response is a stream with at least one event.
func (m *Meter) HasEvents() bool { return m.stream && m.events > 0 }

// Passed estimates the tokens of the response so far. It is needed if the client leaves before the
// usage, or if a client of OpenAI does not request it. It counts one token for each event, and one for
// each four bytes beyond the protocol overhead.
func (m *Meter) Passed() int64 {
	return m.events + max(m.bytes-m.events*frames[m.api], 0)/bytesPerToken
}
