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
	"abl/internal/tokens"
	"abl/internal/wording"
)

// What an agent's output may bring into a sentence, in runes.
const (
	maxAction = 60
	maxName   = 120
	maxReason = 400
)

// follower is what the readers of CLIs have in common: they read records of JSON, one
// a line, among which notices of the CLI may stand and whatever its children print.
type follower struct {
	session string
	tools   int  // used by the model
	cut     bool // some line was too long to be read whole
	speech
	messages
}

// record reads one line into rec, and reports whether it is a record. A field of another
// type than this version of the CLI gives it is left out: what could be read still counts.
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

// tool takes the use of a tool, and names it with the one parameter that says most about it.
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

// result takes what a tool gave back.
func (f *follower) result(failed bool, output string) []Message {
	text := ""
	if failed {
		text = "failed"
	}
	return f.message(Returned, text, output)
}

// noRecord says that a CLI printed no record of its end, given its exit code in words.
func (f *follower) noRecord(name, exit string) string {
	if f.cut {
		return name + " ended without a result record that could be read: a line was too long"
	}
	return fmt.Sprintf("%s ended without a result record, with %s", name, exit)
}

// ended completes a result. A run that gives no other reason has failed by its exit code, or
// done nothing when no model answered it, or when it used no tool and so changed nothing.
func (f *follower) ended(r Result, name string, exit int, answered, toolless bool) Result {
	r.Session, r.Said, r.Toolless = f.session, f.said(), toolless
	switch {
	case r.Reason != "":
	case exit != 0:
		r.Reason = name + " failed with " + exitCode(exit)
	case !answered:
		r.Reason, r.Trouble = name+" ended without a model request that counted a token", outcome.Nothing
	case toolless:
		r.Reason, r.Trouble = name+" ended without using a tool, so it did nothing of its task", outcome.Nothing
	}
	r.Finished = r.Reason == ""
	return r
}

// exitCode is an exit code in words.
func exitCode(exit int) string { return fmt.Sprintf("exit code %d", exit) }

// sign tells a provider's trouble from the agent's by words of an error in small letters.
type sign struct {
	is    outcome.Outcome
	words []string
}

// trouble is what an error says by its words, or else by the provider's HTTP status.
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

// figures are numbers of tokens or calls, by the names that an agent's output has for them.
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

// with returns the figures after a later report. A figure that the report lacks, or for which it
// has 0, stays as it was.
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

// names are what an output calls its figures, where input holds what was cached and
// output the thoughts.
type names struct{ input, cached, output, thoughts string }

func (n names) count(f figures) tokens.Count {
	c := tokens.Count{Input: f.of(n.input), Cached: f.of(n.cached), Candidates: f.of(n.output), Thoughts: f.of(n.thoughts)}
	c.Total = cmp.Or(f.of("total_tokens"), plus(c.Input, c.Candidates))
	return c.WithoutThoughts().ByTotal()
}

// usage has a row for each model, sorted so that the same output always gives the same rows.
func usage(models map[string]figures, count func(figures) tokens.Count) []Usage {
	rows := make([]Usage, 0, len(models))
	for model, figures := range models {
		rows = append(rows, Usage{Model: label(model, maxName), Count: count(figures)})
	}
	slices.SortFunc(rows, byModel)
	return rows
}

// answered reports whether a model has counted a token.
func answered(rows []Usage) bool {
	return slices.ContainsFunc(rows, func(u Usage) bool { return u.Total != nil && *u.Total > 0 })
}

// plus adds figures; the sum is nil if one is missing or the sum overflows.
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

// count is a number of tokens or calls as an agent's output tells it. Anything
// but a whole number that is not negative counts as not told.
type count struct{ n *int64 }

// UnmarshalJSON never fails: one odd figure must not hide the record around it.
func (c *count) UnmarshalJSON(b []byte) error {
	c.n = nil
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		c.n = &n
	}
	return nil
}

// label makes text of an agent's choosing fit for one line of a report: no
// control or invisible characters, no line ends, at most limit runes.
func label(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "�"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}), " ")
	return wording.Cut(s, limit)
}

// reason is an agent's own words for its end, within a sentence of abl's.
func reason(s string) string { return strings.TrimSuffix(label(s, maxReason), ".") }

// action is what the live view shows: a verb and its object, with the
// workspace's own path left out.
func action(verb, object string) string {
	for _, dir := range []string{helper.Src, helper.Tests} {
		object = strings.ReplaceAll(object, dir+"/", "")
	}
	return label(verb+" "+object, maxAction)
}

// maxSaid bounds what is kept of an agent's words, in bytes.
const maxSaid = 1 << 20

// speech gathers what an agent says. What it says before it uses a tool is not
// its answer, unless it says nothing afterwards.
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

// Message is one thing that an agent said or did, as its own output tells it: it proves
// nothing, and no byte of it is safe to show.
type Message struct {
	Kind MessageKind
	Time time.Time // zero where the output tells none
	// What was said; of a tool call what it does, in a line; of a result how it failed, "" when it did not.
	Text string
	// Of a tool call what it was given, of a result what came back; "" for nothing more.
	Detail string
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
		detail = "" // the text contains it
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
func (s *messages) whole() (all []Message) {
	if s.kind == Said {
		all = s.message(Said, s.text, "")
	} else {
		all = s.message(Returned, "", s.text)
	}
	s.text, s.lost = "", 0
	return all
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
