package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hold delays the response until the gateway disconnects.
func hold(q *http.Request) { <-q.Context().Done() }

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

const event = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"totalTokenCount\":6}}\n\n"

// TestHostileUpstream checks faulty responses of a provider: the client gets the received part and
// notices that it is incomplete, and the log has the reason and the usage.
func TestHostileUpstream(t *testing.T) {
	huge := "data: {\"x\":\"" + strings.Repeat("long ", 1<<20) + "\"}\n\n" + event
	tests := []struct {
		name    string
		serve   http.HandlerFunc
		limits  Limits
		status  int
		body    string // all of it, "*" for any
		cut     bool
		reason  string // part of it
		usage   string
		charged int64
	}{
		{"silent before the headers", func(_ http.ResponseWriter, q *http.Request) { hold(q) }, Limits{HeadersMS: 50}, 504, "*", false, "the provider did not respond", "none", most},
		{"slow beyond the request's time", func(_ http.ResponseWriter, q *http.Request) { hold(q) }, Limits{RequestMS: 50}, 504, "*", false, "the request took too long", "none", most},
		{"silent after the headers", func(w http.ResponseWriter, q *http.Request) { flush(w); hold(q) }, Limits{IdleMS: 50}, 200, "", true, "stopped sending", "input:-,cached:-,candidates:-,thoughts:-,tool:-,total:-", most},
		{"silent after an event", func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, event); flush(w); hold(q) }, Limits{IdleMS: 50}, 200, event, true, "stopped sending", "input:5,cached:-,candidates:-,thoughts:-,tool:-,total:6", most},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, event+"data: {\"x")
			flush(w)
			panic(http.ErrAbortHandler)
		}, Limits{}, 200, event + "data: {\"x", true, "is incomplete", "input:5,cached:-,candidates:-,thoughts:-,tool:-,total:6", most},
		{"shorter than announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			io.WriteString(w, event)
			flush(w)
			panic(http.ErrAbortHandler)
		}, Limits{}, 200, event, true, "is incomplete", "input:5,cached:-,candidates:-,thoughts:-,tool:-,total:6", most},
		{"a line of 5 MB", say(200, "text/event-stream", huge), Limits{}, 200, huge, false, "", "input:5,cached:-,candidates:-,thoughts:-,tool:-,total:6", 6},
		{"endless", func(w http.ResponseWriter, q *http.Request) {
			for q.Context().Err() == nil {
				if _, err := io.WriteString(w, event); err != nil {
					return
				}
			}
		}, Limits{Answer: 100_000}, 200, "*", true, "longer than the limit", "input:5,cached:-,candidates:-,thoughts:-,tool:-,total:6", most},
		{"redirect", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/elsewhere", http.StatusFound) }, Limits{}, 502, "*", false, "responds 302", "none", 0},
		{"redirect that keeps the method", func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "/elsewhere", http.StatusTemporaryRedirect)
		}, Limits{}, 502, "*", false, "responds 307", "none", 0},
		{"not modified", say(304, "text/plain", ""), Limits{}, 502, "*", false, "responds 304", "none", 0},
		{"wrong JSON", say(200, "text/event-stream", "data: {\"candidates\": [ this is not json\n\n"), Limits{}, 200, "data: {\"candidates\": [ this is not json\n\n", false, "", "input:-,cached:-,candidates:-,thoughts:-,tool:-,total:-", most},
		{"HTML", say(200, "text/html", "<html>hello</html>"), Limits{}, 200, "<html>hello</html>", false, "", "input:-,cached:-,candidates:-,thoughts:-,tool:-,total:-", most},
		{"empty", say(200, "text/event-stream", ""), Limits{}, 200, "", false, "", "input:-,cached:-,candidates:-,thoughts:-,tool:-,total:-", most},
		{"error", say(500, "application/json", `{"error":{}}`), Limits{}, 500, `{"error":{}}`, false, "", "input:-,cached:-,candidates:-,thoughts:-,tool:-,total:-", 0},
		{"error with its usage", say(504, "application/json", `{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"totalTokenCount":6}}`), Limits{}, 504, "*", false, "responds 504", "input:5,cached:-,candidates:1,thoughts:-,tool:-,total:6", 6},
		{"no connection", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, Limits{}, 502, "*", false, "did not respond", "none", most},
		{"huge headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<17))
		}, Limits{}, 502, "*", false, "did not respond", "none", most},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, tt.serve)
			s := setup(u.URL)
			s.Limits = tt.limits
			r := start(t, s)
			got := r.post(gen, shortBody)
			if got.status != tt.status || tt.body != "*" && got.body != tt.body || (got.err != nil) != tt.cut {
				t.Errorf("response: got %d %.200q, error %v, want %d %.200q, an error: %t",
					got.status, got.body, got.err, tt.status, tt.body, tt.cut)
			}
			e := r.next(Requested)
			if e.Req.Status != tt.status || e.Req.Cut != tt.cut || !strings.Contains(e.Reason, tt.reason) || numbers(e) != tt.usage || e.Req.Charged != tt.charged || e.Req.Refused {
				t.Errorf("log: got %+v, %+v, usage %s, want status %d, cut %t, reason %q, usage %s, charge %d",
					e, e.Req, numbers(e), tt.status, tt.cut, tt.reason, tt.usage, tt.charged)
			}
			if n := len(u.requests()); n != 1 {
				t.Errorf("requests to the provider: got %d, want 1", n)
			}
		})
	}
}

func TestRetryAfterPasses(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{"Retry-After": "30", "Set-Cookie": "a=b", "X-Hop": "1", "Connection": "X-Hop", "X-Request-Id": "r1", "X-Echo": "key " + realKey} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"error":{"code":429}}`)
	})
	r := start(t, setup(u.URL))
	got := r.post(gen, shortBody)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "30" || got.header.Get("X-Request-Id") != "r1" || got.body != `{"error":{"code":429}}` {
		t.Errorf("got %+v, want 429 with Retry-After and X-Request-Id of the provider", got)
	}
	for _, name := range []string{"Set-Cookie", "X-Hop", "X-Echo"} {
		t.Run(name, func(t *testing.T) {
			if got.header.Get(name) != "" {
				t.Errorf("header %s: got %q, want none", name, got.header.Get(name))
			}
		})
	}
}

// TestEchoedKey checks responses that contain the key in any form.
func TestEchoedKey(t *testing.T) {
	coded := base64.StdEncoding.EncodeToString([]byte(realKey))
	for name, f := range map[string]http.HandlerFunc{
		"error":       say(401, "application/json", `{"error":{"message":"wrong key `+realKey+` or `+coded+`"}}`),
		"good answer": say(200, "application/json", `{"you said":"`+realKey+`"}`),
		"in pieces": func(w http.ResponseWriter, _ *http.Request) {
			for _, b := range []byte("data: " + realKey + realKey[:5] + "\n\n" + realKey[:3]) {
				w.Write([]byte{b})
				flush(w)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, setup(serve(t, f).URL))
			got := r.post(gen, shortBody)
			if got.err != nil || strings.Contains(got.body, realKey) || strings.Contains(got.body, coded) {
				t.Errorf("got %+v, want no key", got)
			}
			if name == "in pieces" && got.body != "data: [secret …4a]"+realKey[:5]+"\n\n"+realKey[:3] {
				t.Errorf("response in pieces: got %q, want only the key replaced", got.body)
			}
		})
	}
}

// TestBytesAreThoseOfTheProvider sends streams of random bytes in random pieces.
func TestBytesAreThoseOfTheProvider(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		whole := make([]byte, random.IntN(200_000))
		for i := range whole {
			whole[i] = "sk-REAL\n\r{}[]\":, data\x00\xff0123"[random.IntN(26)]
		}
		var cuts []int
		for at := 0; at < len(whole); {
			n := min(1+random.IntN(20_000), len(whole)-at)
			cuts, at = append(cuts, n), at+n
		}
		u := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			rest := whole
			for _, n := range cuts {
				w.Write(rest[:n])
				flush(w)
				rest = rest[n:]
			}
		})
		got := start(t, setup(u.URL)).post(gen, shortBody)
		if got.err != nil || !bytes.Equal([]byte(got.body), whole) {
			t.Fatalf("response in %d pieces: got %d bytes, error %v, want the %d bytes of the provider",
				len(cuts), len(got.body), got.err, len(whole))
		}
	}
}

// TestEachPieceAtOnce checks that the client gets each piece before the provider sends the next one. A
// gateway that buffers would never end.
func TestEachPieceAtOnce(t *testing.T) {
	arrived := make(chan string)
	u := serve(t, func(w http.ResponseWriter, q *http.Request) {
		flush(w)
		for _, piece := range []string{"headers", "data: 1\n\n", "data: 2\n\n"} {
			select {
			case got := <-arrived:
				if got != piece {
					t.Errorf("arrived piece: got %q, want %q", got, piece)
				}
			case <-q.Context().Done():
				return
			}
			io.WriteString(w, map[string]string{"headers": "data: 1\n\n", "data: 1\n\n": "data: 2\n\n"}[piece])
			flush(w)
		}
	})
	r := start(t, setup(u.URL))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that a failure does not hang
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.addr+"/"+callID+gen, strings.NewReader(shortBody))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Goog-Api-Key", callTok)
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	arrived <- "headers"
	piece := make([]byte, len("data: 1\n\n"))
	for range 2 {
		if _, err := io.ReadFull(resp.Body, piece); err != nil {
			t.Fatal(err)
		}
		arrived <- string(piece)
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("rest of the response: got %q, error %v, want nothing", rest, err)
	}
}

// If the client leaves, the gateway ends the request to the provider immediately, and charges the
// maximum.
func TestClientLeaves(t *testing.T) {
	gone := make(chan struct{}, 2)
	u := serve(t, func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(q.URL.Path, "stream") {
			flush(w)
		}
		hold(q)
		gone <- struct{}{}
	})
	r := start(t, setup(u.URL))
	for _, path := range []string{gen, "/gemini/v1beta/models/m1:generateContent"} {
		conn := dial(t, r.addr)
		io.WriteString(conn, raw(path))
		if strings.Contains(path, "stream") {
			readSome(t, conn)
		} else {
			waitFor(t, func() bool { return len(u.requests()) == 2 })
		}
		conn.Close()
		<-gone
		e := r.next(Requested)
		if !e.Req.Aborted || e.Req.Charged != most || e.Reason != "the client left" {
			t.Errorf("log of %s: got %+v, %+v, want an aborted request, charged %d, because the client left",
				path, e, e.Req, most)
		}
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-t.Context().Done():
			t.Fatal("condition: got false until the end of the test, want true")
		case <-time.After(time.Millisecond):
		}
	}
}
