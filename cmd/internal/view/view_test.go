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

	"abl/cmd/internal/exit"
	"abl/internal/outlet"
	"abl/orchestrator/event"
)

var _ event.Sink = (*View)(nil)

func TestWhatGoesWhere(t *testing.T) {
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
		var out, voice bytes.Buffer
		v, err := Open(t.Context(), Options{Progress: c.progress, JSON: c.json, Stdout: &out, Stderr: &voice})
		if err != nil {
			t.Fatal(err)
		}
		v.Emit(event.Event{Kind: event.Note, Text: "hello"})
		v.Close()
		v.Close()
		live := strings.Contains(voice.String(), clearLine)
		plain := !live && strings.HasSuffix(voice.String(), "abl        hello\n")
		if (out.Len() > 0) != c.events || live != c.live || plain != c.plain {
			t.Errorf("--progress %q, json %t: stdout %q, stderr %q", c.progress, c.json, out.String(), voice.String())
		}
		if c.events && !json.Valid(out.Bytes()) {
			t.Errorf("not JSON: %q", out.String())
		}
		if strings.Contains(voice.String(), "\x1b[2m") {
			t.Errorf("colour where there is no terminal: %q", voice.String())
		}
	}
	if _, err := Open(t.Context(), Options{Progress: "loud"}); err == nil {
		t.Error("an unknown kind of progress is accepted")
	}
}

// A reader that has gone away, or does not read, holds nothing up.
func TestReadersAreNoTrouble(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	for _, progress := range []string{Plain, TTY, JSON} {
		v, err := Open(t.Context(), Options{Progress: progress, Stdout: w, Stderr: w})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range aPhase() {
			v.Emit(e)
		}
		v.Close()
	}
}

func TestStalledReaderLosesNoFact(t *testing.T) {
	r, w := io.Pipe()
	v, err := Open(t.Context(), Options{JSON: true, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	const facts = patience + 100
	for i := range facts { // nobody reads yet: this would block without a queue
		v.Emit(event.Event{Kind: event.Note, Step: i + 1})
		for range 3 {
			v.Emit(event.Event{Kind: event.Action})
		}
	}
	v.queue.mu.Lock()
	held := len(v.queue.waiting)
	v.queue.mu.Unlock()
	if held > facts {
		t.Errorf("%d events wait, of which only %d are facts", held, facts)
	}
	go func() {
		v.Close()
		w.Close()
	}()
	dec, want := json.NewDecoder(r), 1
	for {
		var e event.Event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Note {
			if e.Step != want {
				t.Fatalf("fact %d instead of %d", e.Step, want)
			}
			want++
		}
	}
	if want != facts+1 {
		t.Errorf("%d facts of %d", want-1, facts)
	}
}

func TestSignalIsAnswered(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	var out bytes.Buffer
	v, err := Open(ctx, Options{Progress: Plain, JSON: true, Stdout: &out, Stderr: w})
	if err != nil {
		t.Fatal(err)
	}
	cancel(exit.Signal{Number: syscall.SIGINT})
	said := make([]byte, 200)
	n, err := r.Read(said)
	if err != nil || !strings.Contains(string(said[:n]), "SIGINT: stopping") {
		t.Errorf("%v, %q", err, said[:n])
	}
	v.Close()
	if out.Len() > 0 {
		t.Errorf("it is among the events: %s", out.String())
	}
}

// Every text of an event is made safe, those that it may get some day too.
func TestCleanLeavesNothingToSteerWith(t *testing.T) {
	const evil = "\x1b[31mred\x07\u009b2J\u202e \xff\nabl: passed sesame-open-4711"
	var e event.Event
	for _, field := range reflect.ValueOf(&e).Elem().Fields() {
		if field.Kind() == reflect.String {
			field.SetString(evil)
		}
	}
	o := &outlet.Outlet{}
	o.Hide("sesame-open-4711")
	e = clean(e, o)
	for _, kind := range append(kinds(t), "unheard-of") {
		e.Kind = event.Kind(kind)
		got := line(words(e, &story{}), 0, noPaint)
		if strings.ContainsAny(got, "\x1b\x07\u009b\u202e\n\r\xff") || strings.Contains(got, "sesame") {
			t.Errorf("%s: %q", kind, got)
		}
	}
	if doc, err := json.Marshal(e); err != nil || strings.ContainsAny(string(doc), "\x1b\x07\u009b\u202e\n\r\xff") || strings.Contains(string(doc), "sesame") {
		t.Errorf("%s, %v", doc, err)
	}
	if e.Time.IsZero() || fmt.Sprint(e.Time.Location()) != "UTC" {
		t.Errorf("time %v", e.Time)
	}
}

// A run that was refused before anything began is told by the command's error
// alone; a reader of events learns it all the same.
func TestRefusalIsToldOnce(t *testing.T) {
	code := exit.Usage
	refusal := event.Event{Kind: event.Outcome, Text: "cannot find the key", Exit: &code}
	for _, progress := range []string{Plain, TTY} {
		var out, voice bytes.Buffer
		v, err := Open(t.Context(), Options{Progress: progress, JSON: true, Stdout: &out, Stderr: &voice})
		if err != nil {
			t.Fatal(err)
		}
		v.Emit(refusal)
		v.Close()
		if voice.Len() > 0 || !strings.Contains(out.String(), "cannot find the key") {
			t.Errorf("--progress %s: stdout %q, stderr %q", progress, out.String(), voice.String())
		}
	}
	var voice bytes.Buffer
	v, err := Open(t.Context(), Options{Progress: Plain, Stderr: &voice})
	if err != nil {
		t.Fatal(err)
	}
	v.Emit(event.Event{Kind: event.PhaseStart, Phase: 1})
	v.Emit(refusal)
	v.Close()
	if !strings.Contains(voice.String(), "cannot find the key") {
		t.Errorf("the end of a run is not shown: %q", voice.String())
	}
}
