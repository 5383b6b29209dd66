package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	extraValue = "team-REAL-canary-5d4c3b2a"
	extraQuery = "version-REAL-canary-1a2b"
	renewedKey = "sk-REAL-renewed-0a1b2c3d"
)

// loggedIn returns a setup with the key in another header than the API's, and with a company gateway's
// headers and parameters.
func loggedIn(upstream string) Setup {
	s := setup(upstream)
	for i := range s.Providers {
		p := &s.Providers[i]
		p.KeyHeader, p.KeyScheme = "Api-Key", "Token "
		p.Extra = map[string]Secret{"X-Gateway-Key": extraValue}
		p.Query = map[string]Secret{"api-version": extraQuery}
	}
	return s
}

// A provider gets its key only in its header, with the fixed headers and parameters. The agent's
// values for these are removed.
func TestTheHeadersOfALogin(t *testing.T) {
	u := serve(t, say(http.StatusOK, "application/json", `{"usage":{}}`))
	r := start(t, loggedIn(u.URL))
	for path, query := range map[string]string{
		anthropicPath + "?beta=true": "beta=true&api-version=" + extraQuery,
		chatPath:                     "api-version=" + extraQuery,
		gen:                          "alt=sse&api-version=" + extraQuery,
	} {
		body := modelled
		if path == gen {
			body = shortBody
		}
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/"+callID+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		ask.Header.Set("X-Goog-Api-Key", callTok)
		ask.Header.Set("X-Gateway-Key", "the-agents")
		if got := r.do(ask); got.status != http.StatusOK {
			t.Fatalf("%s: got %+v, want 200", path, got)
		}
		all := u.requests()
		q := all[len(all)-1]
		if q.URL.RawQuery != query || q.Header.Get("Api-Key") != "Token "+realKey || q.Header.Get("X-Gateway-Key") != extraValue {
			t.Errorf("%s: got ?%s with %v, want ?%s", path, q.URL.RawQuery, q.Header, query)
		}
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
			if q.Header.Get(name) != "" {
				t.Errorf("%s: got header %s with %q at the provider, want none", path, name, q.Header.Get(name))
			}
		}
	}
	r.stop()
	r.next(Ended)
	for _, secret := range []string{realKey, extraValue, extraQuery} {
		if strings.Contains(r.log(), secret) {
			t.Errorf("log: got one with %s, want it without", secret)
		}
	}
}

// An agent cannot read the fixed headers from a response, nor send them elsewhere.
func TestFixedHeadersStayInTheGateway(t *testing.T) {
	u := serve(t, say(http.StatusOK, "text/event-stream", "data: {\"said\":\""+extraValue+"\"}\n\n"))
	r := start(t, loggedIn(u.URL))
	if got := r.post(chatPath, modelled); strings.Contains(got.body, extraValue) {
		t.Errorf("response to the agent: got %s, want one without the fixed header", got.body)
	}
	if got := r.post(chatPath, `{"model":"m1","user":"`+extraValue+`"}`); got.status != http.StatusForbidden {
		t.Errorf("got %+v, want 403 for a body with a fixed header", got)
	}
}

func TestOddHeadersOfASetup(t *testing.T) {
	for name, change := range map[string]func(*Provider){
		"line break":  func(p *Provider) { p.Extra = map[string]Secret{"X-A": "a\nX-B: b"} },
		"no name":     func(p *Provider) { p.Extra = map[string]Secret{"": "a"} },
		"odd name":    func(p *Provider) { p.Extra = map[string]Secret{"X A": "a"} },
		"odd key's":   func(p *Provider) { p.KeyHeader = "X:A" },
		"space after": func(p *Provider) { p.Extra = map[string]Secret{"X-A": "a "} },
	} {
		t.Run(name, func(t *testing.T) {
			s := setup("http://127.0.0.1:1")
			change(&s.Providers[0])
			r := launch(t, Dialer{}, encode(t, s))
			if err := <-r.done; err == nil || !strings.Contains(err.Error(), `cannot use provider "gemini"`) {
				t.Errorf("got %v, want an error about the provider", err)
			}
		})
	}
}

// A key that expires is replaced while the call runs, also after the old one was refused.
func TestARenewedKey(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Api-Key") != renewedKey {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"expired"}}`)
			return
		}
		io.WriteString(w, `{"stop_reason":"end_turn","text":"`+realKey+" "+renewedKey+`","usage":{"input_tokens":1,"output_tokens":1}}`)
	})
	r := start(t, setup(u.URL))
	if got := r.post(anthropicPath, modelled); got.status != http.StatusForbidden {
		t.Fatalf("got %+v, want 403 for an expired key", got)
	}
	r.send(`{"key":"` + renewedKey + `"}`)
	if e := r.next(Obeyed); e.Reason != "key" {
		t.Errorf("got %+v, want key", e)
	}
	got := r.post(anthropicPath, modelled)
	if got.status != http.StatusOK || strings.Contains(got.body, realKey) || strings.Contains(got.body, renewedKey) {
		t.Errorf("got %+v, want 200 without a key in the answer", got)
	}
	for _, bad := range []string{`{"key":" x"}`, `{"key":""}`, `{"keys":"` + renewedKey + `"}`} {
		r.send(bad)
		if e := r.next(Noted); !strings.HasPrefix(e.Reason, "cannot execute a command") {
			t.Errorf("%s: got %+v, want a note", bad, e)
		}
	}
	r.stop()
	r.next(Ended)
	if strings.Contains(r.log(), renewedKey) || strings.Contains(r.log(), realKey) {
		t.Errorf("log: got\n%s\nwant one without a key", r.log())
	}
}
