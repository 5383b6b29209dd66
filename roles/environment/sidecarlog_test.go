package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/gateway"
	"abl/internal/redact"
	"abl/internal/sandbox"
)

// dying is an engine whose container has printed this output.
type dying struct {
	sandbox.Engine
	words string
}

func (dying) Stop(context.Context, string, time.Duration) error { return nil }
func (dying) Remove(context.Context, string) error              { return nil }
func (d dying) Logs(context.Context, string, int64) ([]byte, error) {
	return []byte(d.words), nil
}

// The stored output of a gateway that died contains no key.
func TestLastOutputIsRedacted(t *testing.T) {
	o := &redact.Sanitizer{}
	o.Hide(key)
	s := sidecar{Engine: dying{words: `{"seq":1,"kind":"ready"}` + "\npanic: " + key + "\x1b[2J\n"}, Keep: filepath.Join(t.TempDir(), "log"), Safe: o}
	for range 2 {
		log, err := s.Close(t.Context())
		if must(t, err); len(log.Entries) != 1 || log.Ended {
			t.Errorf("log: got %+v, want 1 entry and no end", log)
		}
	}
	kept, err := os.ReadFile(s.Keep)
	if must(t, err); !strings.HasSuffix(string(kept), "\npanic: [secret …15]\\u001b[2J\n") {
		t.Errorf("log on disk: got %q, want one without the key and escape sequences", kept)
	}
}

// Only the newest line has the usage, even if lines before it are lost.
func TestParse(t *testing.T) {
	const ready = `{"seq":1,"kind":"ready","sum":{"spent":0}}`
	const request = `{"seq":2,"kind":"request","sum":{"spent":5}}`
	const end = `{"seq":3,"kind":"end","sum":{"spent":7}}`
	for _, c := range []struct{ name, log, want string }{
		{"whole", ready + "\n" + request + "\n" + end + "\n", "3 lines, ended true, 7 spent"},
		{"nothing", "", "0 lines, ended false, unknown"},
		{"killed", ready + "\n" + request + "\n", "2 lines, ended false, 5 spent"},
		{"torn", ready + "\n" + `{"seq":2,"ki`, "1 lines, ended false, 0 spent"},
		{"a line is missing", ready + "\n" + end + "\n", "2 lines, ended true, 7 spent"},
		{"the first lines are rotated away", end + "\n", "1 lines, ended true, 7 spent"},
		{"said twice", ready + "\n" + ready + "\n" + request + "\n" + end + "\n", "3 lines, ended true, 7 spent"},
		{"with what was seen before", ready + "\n" + request + "\n" + end + "\n\n" + request + "\n", "3 lines, ended true, 7 spent"},
		{"with what was seen and lost", ready + "\n\n" + request + "\n", "2 lines, ended false, 5 spent"},
		{"words of a dying program", ready + "\npanic: x\n", "1 lines, ended false, 0 spent"},
		{"words before a proper end", "x\n" + ready + "\n" + request + "\n" + end + "\n", "3 lines, ended true, 7 spent"},
		{"of a gateway without sums", `{"seq":1,"kind":"end"}` + "\n", "1 lines, ended true, unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := parseGateLog([]byte(c.log))
			got := fmt.Sprintf("%d lines, ended %t, ", len(log.Entries), log.Ended)
			if sum := log.Sum(); sum == nil {
				got += "unknown"
			} else {
				got += fmt.Sprintf("%d spent", sum.Spent)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The usage in the log of a running gateway is known after the gateway is gone, also to another abl.
func TestUsageIsKeptAfterTheGateway(t *testing.T) {
	words := `{"seq":1,"kind":"ready"}` + "\n" + `{"seq":7,"kind":"begin","sum":{"spent":5,"reserved":9}}` + "\n"
	s := sidecar{Engine: dying{words: words}, Keep: filepath.Join(t.TempDir(), "log"), Safe: &redact.Sanitizer{}}
	var heard int64
	for last := int64(0); last < 7; {
		var err error
		last, err = s.see(t.Context(), last, func(e gateway.Entry) { heard += e.Sum.Spent })
		must(t, err)
	}
	_, err := s.see(t.Context(), 7, func(e gateway.Entry) { t.Errorf("entry after 7: got %+v, want none", e) })
	must(t, err)
	s.Engine = goneEngine{}
	log, err := s.Close(t.Context())
	sum := log.Sum()
	if heard != 5 || !errors.Is(err, errGatewayGone) || log.Ended || sum == nil || sum.Spent != 5 || sum.Reserved != 9 {
		t.Errorf("usage: got %d heard, log %+v, error %v, want spent 5, reserved 9, error %v",
			heard, log, err, errGatewayGone)
	}
	must(t, s.forget(t.Context()))
	if log, _ := s.Close(t.Context()); log.Sum() != nil {
		t.Errorf("log of the next call: got %+v, want one without a sum", log)
	}
}

// goneEngine is an engine without the container.
type goneEngine struct{ dying }

func (goneEngine) Stop(context.Context, string, time.Duration) error { return sandbox.ErrNotFound }

func TestWords(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"a response", `{"kind":"request","request":{"model":"m"},"usage":{"input":1200,"candidates":34}}`, "request to m, 1,234 tokens"},
		{
			"a tool call", `{"kind":"request","request":{"model":"m","calls":true},"usage":{"total":5}}`,
			"request to m, 5 tokens, the model calls a tool",
		},
		{
			"a fault", `{"kind":"request","reason":"the provider responds 429","request":{"model":"m"}}`,
			"request to m: the provider responds 429",
		},
		{"no usage", `{"kind":"request","request":{"model":"m"}}`, "request to m"},
		{"an empty usage", `{"kind":"request","request":{"model":"m"},"usage":{"total":null}}`, "request to m"},
		{"a count of tokens", `{"kind":"request","request":{"model":"m","free":true}}`, ""},
		{"a refused path", `{"kind":"request","reason":"refused","request":{"method":"GET"}}`, ""},
		{"a request that begins", `{"kind":"begin","request":{"model":"m"}}`, ""},
		{"a damaged line", `{"kind":"request"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e gateway.Entry
			must(t, json.Unmarshal([]byte(c.line), &e))
			if got := requestText(e); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
