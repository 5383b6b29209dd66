package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"abl/cmd/internal/exit"
	"abl/internal/redact"
	"abl/internal/state"
)

var _ state.Sink = (*View)(nil)

func TestOutputStreams(t *testing.T) {
	cases := []struct {
		progress     string
		json         bool
		events, live bool
		plain        bool
	}{
		{"", false, false, false, true},
		{Auto, false, false, false, true},
		{Auto, true, true, false, false},
		{JSON, false, true, false, false},
		{Plain, true, true, false, true},
		{Plain, false, false, false, true},
		{TTY, false, false, true, false},
	}
	for _, c := range cases {
		var out, stderr bytes.Buffer
		v := Open(t.Context(), Options{Progress: c.progress, JSON: c.json, Stdout: &out, Stderr: &stderr})
		v.Emit(state.Event{Kind: state.Note, Text: "hello"})
		v.Close()
		v.Close()
		live := strings.Contains(stderr.String(), clearLine)
		plain := !live && strings.HasSuffix(stderr.String(), "abl        hello\n")
		if (out.Len() > 0) != c.events || live != c.live || plain != c.plain {
			t.Errorf("--progress %q, json %t: got stdout %q, stderr %q, want events %t, live %t, plain %t",
				c.progress, c.json, out.String(), stderr.String(), c.events, c.live, c.plain)
		}
		if c.events && !json.Valid(out.Bytes()) {
			t.Errorf("stdout: got %q, want JSON", out.String())
		}
		if strings.Contains(stderr.String(), "\x1b[2m") {
			t.Errorf("stderr without a terminal: got %q, want no colour", stderr.String())
		}
	}
}

// The lines about a stuck phase are indented below their headings.
func TestNotesKeepTheirIndentation(t *testing.T) {
	for _, progress := range []string{Plain, TTY} {
		t.Run(progress, func(t *testing.T) {
			var stderr bytes.Buffer
			v := Open(t.Context(), Options{Progress: progress, Stderr: &stderr})
			v.Emit(state.Event{Kind: state.Note, Text: "  P1.C1   a\nb"})
			v.Close()
			if got, want := stderr.String(), "abl          P1.C1 a b"; !strings.Contains(got, want) {
				t.Errorf("got %q, want %q in it", got, want)
			}
		})
	}
}

// A reader that is gone or does not read never blocks the run.
func TestReadersNeverBlock(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	for _, progress := range []string{Plain, TTY, JSON} {
		v := Open(t.Context(), Options{Progress: progress, Stdout: w, Stderr: w})
		for _, e := range aPhase() {
			v.Emit(e)
		}
		v.Close()
	}
}

func TestStalledReaderLosesNoFact(t *testing.T) {
	r, w := io.Pipe()
	v := Open(t.Context(), Options{JSON: true, Stdout: w})
	const facts = maxWaiting + 100
	for i := range facts { // nobody reads yet: this would block without a queue
		v.Emit(state.Event{Kind: state.Note, Step: i + 1})
		for range 3 {
			v.Emit(state.Event{Kind: state.Action})
		}
	}
	v.mu.Lock()
	held := len(v.waiting)
	v.mu.Unlock()
	if held > facts {
		t.Errorf("waiting events: got %d, want at most the %d facts", held, facts)
	}
	go func() {
		v.Close()
		w.Close()
	}()
	dec, want := json.NewDecoder(r), 1
	for {
		var e state.Event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e.Kind == state.Note {
			if e.Step != want {
				t.Fatalf("fact: got %d, want %d", e.Step, want)
			}
			want++
		}
	}
	if want != facts+1 {
		t.Errorf("facts: got %d, want %d", want-1, facts)
	}
}

func TestSignalIsReported(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	var out bytes.Buffer
	v := Open(ctx, Options{Progress: Plain, JSON: true, Stdout: &out, Stderr: w})
	cancel(exit.Signal{Number: syscall.SIGINT})
	said := make([]byte, 200)
	n, err := r.Read(said)
	if err != nil || !strings.Contains(string(said[:n]), "SIGINT: stopping") {
		t.Errorf("report of the signal: got %q, error %v, want %q in it", said[:n], err, "SIGINT: stopping")
	}
	v.Close()
	if out.Len() > 0 {
		t.Errorf("events: got %s, want no report of the signal", out.String())
	}
}

// Every text field of an event is redacted, future fields included.
func TestCleanRemovesEscapes(t *testing.T) {
	const evil = "\x1b[31mred\x07\u009b2J\u202e \xff\nabl: passed sesame-open-4711"
	var e state.Event
	for _, field := range reflect.ValueOf(&e).Elem().Fields() {
		if field.Kind() == reflect.String {
			field.SetString(evil)
		}
	}
	o := &redact.Sanitizer{}
	o.Hide("sesame-open-4711")
	e = clean(e, o)
	for _, kind := range append(kinds(t), "unheard-of") {
		e.Kind = state.Kind(kind)
		got := line(describe(e, &story{}), 0, false)
		first, below, _ := strings.Cut(got, "\n")
		if !printable(first+strings.ReplaceAll(below, "\n"+strings.Repeat(" ", head), "")) || strings.Contains(got, "sesame") {
			t.Errorf("%s: got %q, want printable text without the secret", kind, got)
		}
	}
	if doc, err := json.Marshal(e); err != nil || !printable(string(doc)) || strings.Contains(string(doc), "sesame") {
		t.Errorf("event: got %s, error %v, want printable JSON without the secret", doc, err)
	}
	if e.Time.IsZero() || fmt.Sprint(e.Time.Location()) != "UTC" {
		t.Errorf("time: got %v, want one in UTC", e.Time)
	}
}

// printable reports whether text is valid UTF-8 without the controls of the test above.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsAny(text, "\x1b\x07\u009b\u202e\n\r")
}

// A run that is refused before anything begins prints only the command's error. JSON events report
// it too.
func TestRefusalIsPrintedOnce(t *testing.T) {
	code := exit.Usage
	refusal := state.Event{Kind: state.Outcome, Text: "cannot find the key", Exit: &code}
	for _, progress := range []string{Plain, TTY} {
		var out, stderr bytes.Buffer
		v := Open(t.Context(), Options{Progress: progress, JSON: true, Stdout: &out, Stderr: &stderr})
		v.Emit(refusal)
		v.Close()
		if stderr.Len() > 0 || !strings.Contains(out.String(), "cannot find the key") {
			t.Errorf("--progress %s: got stdout %q, stderr %q, want only the event",
				progress, out.String(), stderr.String())
		}
	}
	var stderr bytes.Buffer
	v := Open(t.Context(), Options{Progress: Plain, Stderr: &stderr})
	v.Emit(state.Event{Kind: state.PhaseStart, Phase: 1})
	v.Emit(refusal)
	v.Close()
	if !strings.Contains(stderr.String(), "cannot find the key") {
		t.Errorf("end of a run: got %q, want the refusal in it", stderr.String())
	}
}

// capped is a file on a disk with limited space.
type capped struct {
	strings.Builder
	room int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.room)
	c.room -= n
	c.Builder.Write(p[:n])
	if n < len(p) {
		return n, &os.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC}
	}
	return n, nil
}

// On a full disk a log lacks only the events that did not fit.
func TestFullDiskTakesLaterEvents(t *testing.T) {
	for name, of := range map[string]func(io.Writer) interface{ show(state.Event) }{
		"json":  func(w io.Writer) interface{ show(state.Event) } { return &jsonLines{out: w} },
		"plain": func(w io.Writer) interface{ show(state.Event) } { return &lines{out: w} },
	} {
		t.Run(name, func(t *testing.T) {
			log := &capped{room: 1000}
			p := of(log)
			say := func(text string) { p.show(state.Event{Kind: state.Note, Time: time.Unix(1, 0), Text: text}) }
			say("before")
			log.room = 9
			say("torn")
			say("lost")
			log.room = 1000
			say("after")
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, "after") || name == "json" && !json.Valid([]byte(last)) {
				t.Errorf("got log %q, want the event \"after\" in its last line", log.String())
			}
		})
	}
}

// The cost follows the tokens, and unknown numbers are "unknown".
func TestCostText(t *testing.T) {
	n := int64(1000)
	var s story
	for _, step := range []struct{ cost, line, sum string }{
		{"0.0182", "1,000 tokens (m), 0.018 USD", "1,000 tokens, 0.018 USD"},
		{"1.5", "1,000 tokens (m), 1.50 USD", "2,000 tokens, 1.52 USD"},
		{"unknown", "1,000 tokens (m), cost unknown", "3,000 tokens, at least 1.52 USD"},
	} {
		e := state.Event{Kind: state.Usage, Time: time.Unix(1, 0), Model: "m", Tokens: &n, CostUSD: step.cost}
		s.add(e)
		if got, sum := describe(e, &s).text, UsedWords(s.used.Account().All); got != step.line || sum != step.sum {
			t.Errorf("%s: got %q, in all %q, want %q, in all %q", step.cost, got, sum, step.line, step.sum)
		}
	}
	l := &lines{story: s, now: time.Now, width: func() int { return 200 }}
	if got := l.status(); !strings.Contains(got, "  3,000 tokens, at least 1.52 USD") {
		t.Errorf("status: got %q, want the tokens and at least their known cost", got)
	}
}

// The last line of a run has "at least" if one of its calls reported no usage, and "unknown" if none
// did.
func TestMissingUsageInTheLastLine(t *testing.T) {
	n, passed := int64(1000), 0
	ended, used := state.Event{Kind: state.CallEnd, Class: "done"}, state.Event{Kind: state.Usage, Tokens: &n, CostUSD: "0.5"}
	for _, c := range []struct {
		name string
		all  []state.Event
		want string
	}{
		{"all-used", []state.Event{ended, used, ended, used}, "passed (0:00, 2,000 tokens, 1.00 USD)"},
		{"the-last-untold", []state.Event{ended, used, ended}, "passed (0:00, at least 1,000 tokens, at least 0.50 USD)"},
		{"the-first-untold", []state.Event{ended, ended, used}, "passed (0:00, at least 1,000 tokens, at least 0.50 USD)"},
		{"none-used", []state.Event{ended}, "passed (0:00, tokens unknown, cost unknown)"},
		{"no-call", nil, "passed (0:00)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s story
			end := state.Event{Kind: state.Outcome, Text: "passed", Exit: &passed}
			for _, e := range append(c.all, end) {
				e.Time = time.Unix(1, 0)
				s.add(e)
			}
			end.Time = time.Unix(1, 0)
			if got := describe(end, &s).text; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The last output of an app that failed is below the failure.
func TestOutputBelowAFailure(t *testing.T) {
	e := state.Event{Kind: state.AppFailed, Text: "exit code 1", Output: "Error: no\n  at x"}
	want := "   0:00  app        does not start: exit code 1\n                    Error: no\n                      at x"
	if got := line(describe(e, &story{}), 0, false); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
