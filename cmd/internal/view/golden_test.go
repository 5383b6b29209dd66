package view

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("output: got\n%s\nwant the text of %s (-update writes it)", got, path)
	}
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	p := &lines{out: &out}
	for _, e := range aPhase() {
		p.show(clean(e, nil))
	}
	golden(t, "plain.txt", out.String())
	if strings.ContainsAny(out.String(), "\x1b\x07\r\u202e") {
		t.Errorf("output: got %q, want no control characters of an agent", out.String())
	}
}

func TestJSON(t *testing.T) {
	out := &writes{}
	j := &jsonLines{out: out}
	events := aPhase()
	for _, e := range events {
		j.show(clean(e, nil))
	}
	if len(out.each) != len(events) {
		t.Errorf("writes: got %d, want %d, one for each event", len(out.each), len(events))
	}
	golden(t, "events.jsonl", strings.Join(out.each, ""))
}

// The golden file has the stream of a live view, one quoted line per write.
func TestLive(t *testing.T) {
	out := &writes{}
	now := noon
	l := &lines{out: out, live: true, paint: true, now: func() time.Time { return now }, width: func() int { return 60 }}
	l.redraw()
	for _, e := range aPhase() {
		now = e.Time
		l.show(clean(e, nil))
		l.redraw()
		l.redraw()
	}
	l.close()
	var quoted strings.Builder
	for _, w := range out.each {
		quoted.WriteString(strconv.Quote(w) + "\n")
		if !strings.HasPrefix(w, hideCursor) || !strings.HasSuffix(w, showCursor) {
			t.Errorf("write: got %q, want one that hides the cursor first and shows it at the end", w)
		}
	}
	golden(t, "live.quoted", quoted.String())
}

// writes keeps each write apart.
type writes struct{ each []string }

func (w *writes) Write(p []byte) (int, error) {
	w.each = append(w.each, string(p))
	return len(p), nil
}

// The current activity is in the status line, with its seconds at the end at any width, until the next
// event. Plain lines and JSON do not have it.
func TestProgressIsOnlyInTheStatus(t *testing.T) {
	var plain, events bytes.Buffer
	live, now := &writes{}, noon
	views := []interface{ show(state.Event) }{
		&lines{out: &plain}, &jsonLines{out: &events},
		&lines{out: live, live: true, now: func() time.Time { return now }, width: func() int { return 60 }},
	}
	show := func(e state.Event) {
		for _, v := range views {
			v.show(clean(e, nil))
		}
	}
	status := func() string {
		views[2].(*lines).redraw()
		return strings.TrimSuffix(strings.TrimPrefix(live.each[len(live.each)-1], hideCursor+clearLine), showCursor)
	}
	show(state.Event{Kind: state.Note, Time: noon, Text: "making images"})
	show(state.Event{Kind: state.Progress, Time: noon.Add(2 * time.Second), Text: "tools: step 3/17 RUN apt-get update && apt-get install \x1b[2J everything"})
	now = noon.Add(14 * time.Second)
	if got, want := status(), "abl  0:14  tools: step 3/17 RUN apt-get update && ap…  0:12"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	show(state.Event{Kind: state.Progress, Time: now, Text: "replay 3 of 9"})
	if got, want := status(), "abl  0:14  replay 3 of 9  0:00"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	show(state.Event{Kind: state.Note, Time: now, Text: "made"})
	if got, want := status(), "abl        made\r\nabl  0:14"; !strings.HasSuffix(got, want) {
		t.Errorf("after a fact %q, want %q at the end", got, want)
	}
	if got := strings.Count(plain.String(), "\n"); got != 2 || strings.Count(events.String(), "\n") != 2 {
		t.Errorf("got plain lines\n%sand events\n%swant only the two facts", plain.String(), events.String())
	}
}
