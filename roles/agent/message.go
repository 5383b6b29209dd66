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
	at   string // when, as the line that is read tells it
	kind MessageKind
	text string // of the pieces
	lost int    // bytes of them that there was no room for
}

// message is the one that a line tells, none where it tells nothing.
func (s *messages) message(kind MessageKind, text, detail string) []Message {
	if strings.TrimSpace(text+detail) == "" {
		return nil
	}
	if strings.HasSuffix(text, detail) {
		detail = "" // all of it is told
	}
	at, _ := time.Parse(time.RFC3339, s.at) // zero where it is no time
	return []Message{{Kind: kind, Time: at.UTC(), Text: s.bounded(text), Detail: s.bounded(detail)}}
}

// bounded keeps a text to maxMessage, and says what is left out.
func (s *messages) bounded(text string) string {
	kept := text[:min(len(text), maxMessage)]
	if more := s.lost + len(text) - len(kept); more > 0 && text != "" {
		return strings.ToValidUTF8(kept, "") + fmt.Sprintf("\n… %d more bytes", more)
	}
	return text
}

// piece takes a part of a message that the next lines may go on with.
func (s *messages) piece(kind MessageKind, text string) {
	room := min(maxMessage-len(s.text), len(text))
	s.kind, s.text, s.lost = kind, s.text+text[:room], s.lost+len(text)-room
}

// whole is what was gathered, which is over.
func (s *messages) whole() (told []Message) {
	if s.kind == Said {
		told = s.message(Said, s.text, "")
	} else {
		told = s.message(Returned, "", s.text)
	}
	s.text, s.lost = "", 0
	return told
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
	At string `json:"timestamp"`
}

func (s stamped) when() string { return s.At }
