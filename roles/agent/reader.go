package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/usage"
	"abl/internal/wording"
)

// Maximum lengths of an agent's text within a message, in runes.
const (
	maxAction = 60
	maxName   = 120
	maxReason = 400
)

// follower has the common parts of the readers of CLIs. Each line is a JSON record, or text that
// the CLI or its children print.
type follower struct {
	session string
	tools   int  // number of uses
	cut     bool // a line was too long
	speech
	messages
}

// record reads one line into rec and reports whether it is a record. It ignores fields with an
// unexpected type, which another version of the CLI may have.
func (f *follower) record(line []byte, cut bool, rec interface{ when() string }) bool {
	f.cut = f.cut || cut
	if cut || len(line) == 0 || line[0] != '{' {
		return false
	}
	err := json.Unmarshal(line, rec)
	var odd *json.UnmarshalTypeError
	f.at = rec.when()
	return err == nil || errors.As(err, &odd)
}

// tool returns the message for the use of a tool, with its most informative parameter.
func (f *follower) tool(name string, parameters map[string]any) []Message {
	f.tools++
	f.pause()
	object := ""
	for _, key := range []string{"command", "file_path", "absolute_path", "path", "dir_path", "pattern", "query"} {
		if object, _ = parameters[key].(string); object != "" {
			break
		}
	}
	return f.message(Called, action(name, object), arguments(parameters))
}

// result returns the message for the result of a tool.
func (f *follower) result(failed bool, output string) []Message {
	text := ""
	if failed {
		text = "failed"
	}
	return f.message(Returned, text, output)
}

// noRecord returns the reason for a CLI without a result record. exit is its exit code in words.
func (f *follower) noRecord(name, exit string) string {
	if f.cut {
		return name + " ended without a readable result record: a line was too long"
	}
	return fmt.Sprintf("%s ended without a result record, with %s", name, exit)
}

// ended completes a result. If r has no reason yet, a call fails by its exit code, if no model
// responded, or if it used no tool.
func (f *follower) ended(r Result, name string, exit int, answered, toolless bool) Result {
	r.Session, r.Said, r.Toolless = f.session, f.said(), toolless
	switch {
	case r.Reason != "":
	case exit != 0:
		r.Reason = name + " failed with " + exitCode(exit)
	case !answered:
		r.Reason, r.Trouble = name+" ended without a model request that used a token", outcome.Nothing
	case toolless:
		r.Reason, r.Trouble = name+" ended without using a tool, so it did not work on its task", outcome.Nothing
	}
	r.Finished = r.Reason == ""
	return r
}

// exitCode returns an exit code in words.
func exitCode(exit int) string { return fmt.Sprintf("exit code %d", exit) }

// sign has words of error messages, in lower case, that identify a class of failure.
type sign struct {
	is    outcome.Outcome
	words []string
}

// trouble returns the class of an error by its words, or else by the provider's HTTP status.
func trouble(said string, status *int64, signs []sign) outcome.Outcome {
	said = strings.ToLower(said)
	for _, s := range signs {
		if slices.ContainsFunc(s.words, func(word string) bool { return strings.Contains(said, word) }) {
			return s.is
		}
	}
	if status == nil {
		return ""
	}
	return outcome.FromHTTP(*status)
}

// figures are numbers of tokens or calls, by their names in an agent's output.
type figures map[string]count

// of returns the first reported figure of several names.
func (f figures) of(names string) *int64 {
	for name := range strings.FieldsSeq(names) {
		if n := f[name].n; n != nil {
			return n
		}
	}
	return nil
}

// with returns the figures after a later report. It keeps the earlier figure if the later one is
// missing or 0.
func (f figures) with(later figures) figures {
	all := maps.Clone(f)
	if all == nil {
		all = figures{}
	}
	for name, c := range later {
		if old := f[name].n; c.n != nil && (*c.n > 0 || old == nil) {
			all[name] = c
		}
	}
	return all
}

// names are the names of the figures in an output in which input includes cached tokens, and output
// includes thoughts.
type names struct{ input, cached, output, thoughts string }

func (n names) count(f figures) usage.Count {
	c := usage.Count{Input: f.of(n.input), Cached: f.of(n.cached), Candidates: f.of(n.output), Thoughts: f.of(n.thoughts)}
	c.Total = cmp.Or(f.of("total_tokens"), plus(c.Input, c.Candidates))
	return c.WithoutThoughts().ByTotal()
}

// usagesOf returns a row for each model, sorted.
func usagesOf(models map[string]figures, count func(figures) usage.Count) []Usage {
	rows := make([]Usage, 0, len(models))
	for model, figures := range models {
		rows = append(rows, Usage{Model: label(model, maxName), Count: count(figures)})
	}
	slices.SortFunc(rows, byModel)
	return rows
}

// answered reports whether a model used a token.
func answered(rows []Usage) bool {
	return slices.ContainsFunc(rows, func(u Usage) bool { return u.Total != nil && *u.Total > 0 })
}

// plus adds figures. It returns nil if one is missing or the sum overflows.
func plus(all ...*int64) *int64 {
	var sum int64
	for _, n := range all {
		if n == nil || sum+*n < sum {
			return nil
		}
		sum += *n
	}
	return &sum
}

// count is a number of tokens or calls in an agent's output. n is nil for anything but a
// non-negative whole number.
type count struct{ n *int64 }

// UnmarshalJSON never fails, so that an invalid figure does not hide the rest of the record.
func (c *count) UnmarshalJSON(b []byte) error {
	c.n = nil
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		c.n = &n
	}
	return nil
}

// label returns an agent's text as one safe line: without control characters, invisible characters
// and line ends, at most limit runes.
func label(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}), " ")
	return wording.Cut(s, limit)
}

// reason returns an agent's text as part of a sentence.
func reason(s string) string { return strings.TrimSuffix(label(s, maxReason), ".") }

// action returns a verb and its object for the live view, with paths relative to the workspace.
func action(verb, object string) string {
	for _, dir := range []string{helper.Src, helper.Tests} {
		object = strings.ReplaceAll(object, dir+"/", "")
	}
	return label(verb+" "+object, maxAction)
}

// maxSaid is the maximum length of the text to keep, in bytes.
const maxSaid = 1 << 20

// speech collects an agent's text. The answer is the text after the last use of a tool or, without
// such a text, the text before it.
type speech struct {
	now    strings.Builder
	before string
}

func (s *speech) say(text string) {
	if left := maxSaid - s.now.Len(); len(text) > left {
		text = strings.ToValidUTF8(text[:left], "")
	}
	s.now.WriteString(text)
}

func (s *speech) pause() {
	s.before = s.said()
	s.now.Reset()
}

func (s *speech) said() string {
	if text := s.now.String(); strings.TrimSpace(text) != "" {
		return text
	}
	return s.before
}

// Message is a text or an action in an agent's output. It proves nothing, and it must be sanitized
// before it is printed.
type Message struct {
	Kind MessageKind
	Time time.Time // zero if unknown
	// Text is the agent's text, a tool call in one line, or the failure of a result, "" for
	// success.
	Text string
	// Detail has the arguments of a tool call or the output of a result.
	Detail string
}

// MessageKind is the kind of a message.
type MessageKind string

// The kinds of messages.
const (
	Said     MessageKind = "said"   // text
	Called   MessageKind = "call"   // a tool call
	Returned MessageKind = "result" // the result of a tool call
)

// Line returns a short text of a message for the live view, "" for a result.
func (m Message) Line() string {
	switch m.Kind {
	case Said:
		return label(m.Text, maxAction)
	case Called:
		return m.Text
	}
	return ""
}

// maxMessage is the maximum length of each text of a message, in bytes.
const maxMessage = 64 << 10

// messages creates the messages of an output, and joins one that is spread over several lines.
type messages struct {
	at   string // time in the current line
	kind MessageKind
	text string // of the pieces so far
	lost int    // bytes of the pieces above maxMessage
}

// message returns a message, or nothing if it has no text.
func (s *messages) message(kind MessageKind, text, detail string) []Message {
	if strings.TrimSpace(text+detail) == "" {
		return nil
	}
	if strings.HasSuffix(text, detail) {
		detail = "" // the text contains it
	}
	at, _ := time.Parse(time.RFC3339, s.at) // zero if invalid
	return []Message{{Kind: kind, Time: at.UTC(), Text: s.bounded(text), Detail: s.bounded(detail)}}
}

// bounded cuts a text at maxMessage and notes the number of omitted bytes.
func (s *messages) bounded(text string) string {
	kept := text[:min(len(text), maxMessage)]
	if more := s.lost + len(text) - len(kept); more > 0 && text != "" {
		return strings.ToValidUTF8(kept, "") + fmt.Sprintf("\n… %d more bytes", more)
	}
	return text
}

// piece adds a part of a message that the next lines may continue.
func (s *messages) piece(kind MessageKind, text string) {
	room := min(maxMessage-len(s.text), len(text))
	s.kind, s.text, s.lost = kind, s.text+text[:room], s.lost+len(text)-room
}

// whole returns the message of the pieces so far and begins a new one.
func (s *messages) whole() (all []Message) {
	if s.kind == Said {
		all = s.message(Said, s.text, "")
	} else {
		all = s.message(Returned, "", s.text)
	}
	s.text, s.lost = "", 0
	return all
}

// arguments returns the arguments of a tool as text, sorted by name.
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

// stamped is the time of a record.
type stamped struct {
	At string `json:"timestamp"`
}

func (s stamped) when() string { return s.At }
