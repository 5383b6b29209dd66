package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMissingSetup(t *testing.T) {
	r := launch(t, Dialer{})
	r.in.Close()
	if err := <-r.done; !errors.Is(err, ErrNoSetup) {
		t.Errorf("got %v, want %v", err, ErrNoSetup)
	}
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		defer feed.Close()
		begun := time.Now()
		err := Process{In: in, Out: io.Discard}.Run(t.Context())
		if took := time.Since(begun); !errors.Is(err, ErrNoSetup) || took != patience {
			t.Errorf("got %v after %s, want %v after %s", err, took, ErrNoSetup, patience)
		}
	})
}

func TestEndOfInputIsNoEnd(t *testing.T) {
	r := start(t, setup(serve(t, say(http.StatusOK, "application/json", "{}")).URL))
	r.in.Close()
	for range 3 {
		if got := r.post(gen, shortBody); got.status != http.StatusOK {
			t.Fatalf("got %+v, want 200", got)
		}
	}
	r.stop()
	if e := r.next(Ended); e.Reason != "ended by a signal" {
		t.Errorf("got reason %q, want a signal", e.Reason)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestStop(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, event); flush(w); hold(q) })
	r := start(t, setup(u.URL))
	c := dial(t, r.addr)
	io.WriteString(c, raw(gen))
	readSome(t, c)
	r.stop()
	if e := r.next(Requested); !e.Req.Cut || e.Reason != "the call is over" || e.Req.Charged != most {
		t.Errorf("request under way: got %+v, %+v, want it cut at the end of the call, charged %d", e, e.Req, most)
	}
	if e := r.next(Ended); e.Reason != "ended by a signal" {
		t.Errorf("got reason %q, want a signal", e.Reason)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestDeadline(t *testing.T) {
	s := setup("http://127.0.0.1:1")
	s.Call.Deadline = time.Now().Unix()
	r := start(t, s)
	if e := r.next(Ended); e.Reason != "the call's deadline" {
		t.Errorf("got reason %q, want the deadline of the call", e.Reason)
	}
}

func TestInvalidCommands(t *testing.T) {
	r := start(t, setup("http://127.0.0.1:1"))
	for _, line := range []string{
		"{", "[]", `{"stop":true,"budget":{}}`, "{}", `{"halt":true}`, `{"budget":"` + realKey + `"}`, realKey,
		`{"call":{"id":"a/b","token":"` + realKey + `","deadline":1}}`, `{"budget":null}`,
	} {
		r.send(line)
		if e := r.next(Noted); !strings.HasPrefix(e.Reason, "cannot execute a command: ") {
			t.Errorf("command %.50s: got %+v, want a note that it cannot be executed", line, e)
		}
	}
	r.send(`{"budget":{}}`)
	r.next(Obeyed)
	io.WriteString(r.in, strings.Repeat("x", longestLine)) // is the end of the input
	if log := r.log(); strings.Contains(log, realKey) {
		t.Errorf("log: got %s, want one without the key of the commands", log)
	}
	if got := r.post("/gemini/x", "{}"); got.status != http.StatusNotFound {
		t.Errorf("request after invalid commands: got %+v, want status 404", got)
	}
}

func TestSetupThatIsRefused(t *testing.T) {
	good := func(change func(*Setup)) string {
		s := setup("http://up.example")
		change(&s)
		return encode(t, s)
	}
	tests := map[string]string{
		"cannot read the setup line: want JSON with the fields of this gateway; the error is near byte": "hello " + realKey,
		"cannot read the setup line: want":                                 `{"inside":["here"]}`,
		`cannot use provider "other": its API is unknown`:                  good(func(s *Setup) { s.Providers[0].Name = "other" }),
		`cannot use provider "gemini": its key has a line break`:           good(func(s *Setup) { s.Providers[0].Key = realKey + "\n" }),
		`cannot use provider "gemini": its key has a line break, or a lea`: good(func(s *Setup) { s.Providers[0].Key = realKey + " " }),
		`cannot use provider "gemini": want a plain address`:               good(func(s *Setup) { s.Providers[0].Upstream = "https://u:" + realKey + "@x" }),
		"cannot use the setup's ca":                                        good(func(s *Setup) { s.CA = "none" }),
		"cannot listen":                                                    good(func(s *Setup) { s.Listen = "256.0.0.1:0" }),
	}
	for want, line := range tests {
		r := launch(t, Dialer{}, line)
		err := <-r.done
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), realKey) {
			t.Errorf("got %v, want %s", err, want)
		}
		for e := range r.lines {
			t.Errorf("line of the log: got %+v, want none", e)
		}
	}
}

func TestSecretsHide(t *testing.T) {
	s := setup("http://up.example")
	if all := fmt.Sprintf("%v %+v %#v %s", s, s, s, s.Providers[0].Key); strings.Contains(all, realKey) || strings.Contains(all, callTok) {
		t.Errorf("printed setup: got %s, want one without the key and the token", all)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestLogThatFails: tokens that cannot be written down may not be spent.
func TestLogThatFails(t *testing.T) {
	in := strings.NewReader(encode(t, setup("http://127.0.0.1:1")) + "\n")
	if err := (Process{In: in, Out: broken{}}).Run(t.Context()); err == nil || err.Error() != "cannot write the log: no space" {
		t.Error(err)
	}
}
