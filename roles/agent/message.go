package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Message is one thing that an agent said or did, as its own output tells it: it proves
// nothing, and no byte of it is safe to show.
type Message struct {
	Kind   MessageKind
	Time   time.Time // zero where the output tells none
	Text   string    // what was said; of a tool call what it does, in a line; of a result how it failed, "" when it did not
	Detail string    // of a tool call what it was given, of a result what came back; "" for nothing more
}

// MessageKind tells messages apart.
type MessageKind string

// The kinds of messages.
const (
	Said     MessageKind = "said"   // words of the agent's own
	Called   MessageKind = "call"   // a tool was called
	Returned MessageKind = "result" // and what it gave back
)

// Line is a message in a few words for the live view; a result has none.
func (m Message) Line() string {
	switch m.Kind {
	case Said:
		return label(m.Text, maxAction)
	case Called:
		return m.Text
	}
	return ""
}

// maxMessage bounds each text of a message, in bytes.
const maxMessage = 64 << 10

// messages makes the messages of an output, and gathers one that it tells in pieces.
type messages struct {
	at   time.Time // of the line that is read
	open Message   // of no kind when nothing is gathered
	text strings.Builder
	lost int // bytes of it that there was no room for
}

// message is the one that a line tells, none where it tells nothing.
func (s *messages) message(kind MessageKind, text, detail string) []Message {
	if strings.TrimSpace(text+detail) == "" {
		return nil
	}
	if strings.HasSuffix(text, detail) {
		detail = "" // all of it is told
	}
	return []Message{{Kind: kind, Time: s.at, Text: bounded(text, 0), Detail: bounded(detail, 0)}}
}

// piece takes a part of a message that the next lines may go on with.
func (s *messages) piece(kind MessageKind, text string) {
	if s.open.Kind == "" {
		s.open = Message{Kind: kind, Time: s.at}
	}
	room := min(maxMessage-s.text.Len(), len(text))
	s.text.WriteString(text[:room])
	s.lost += len(text) - room
}

// whole is what was gathered, which is over.
func (s *messages) whole() []Message {
	m, text := s.open, s.text.String()
	lost := s.lost
	s.open, s.lost = Message{}, 0
	s.text.Reset()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if text = bounded(text, lost); m.Kind == Said {
		m.Text = text
	} else {
		m.Detail = text
	}
	return []Message{m}
}

// bounded keeps a text to maxMessage and says how many bytes are left out, those that are lost
// already among them.
func bounded(text string, lost int) string {
	if most := min(len(text), maxMessage); lost > 0 || most < len(text) {
		return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("\n… %d more bytes", lost+len(text)-most)
	}
	return text
}

// arguments are what a tool was given, by name.
func arguments(given map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, is := given[name].(string)
		if !is {
			data, _ := json.Marshal(given[name]) // it was JSON
			text = string(data)
		}
		if strings.Contains(text, "\n") {
			text = "\n" + text
		}
		all = append(all, name+": "+text)
	}
	return strings.Join(all, "\n")
}

// stamped is the part of a record that tells its time.
type stamped struct {
	At stamp `json:"timestamp"`
}

func (s stamped) when() time.Time { return s.At.Time }

// stamp is zero where an output tells no time, or in another form.
type stamp struct{ time.Time }

// UnmarshalJSON never fails: one odd time must not hide the record around it.
func (s *stamp) UnmarshalJSON(b []byte) error {
	if at, err := time.Parse(`"`+time.RFC3339+`"`, string(b)); err == nil {
		s.Time = at.UTC()
	}
	return nil
}
