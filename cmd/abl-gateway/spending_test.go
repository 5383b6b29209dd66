package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"abl/internal/gateway"
	"abl/internal/usage"
)

// newest is the content of the newest line of the log.
type newest struct {
	Seq  int64  `json:"seq"`
	Kind string `json:"kind"`
	Sum  struct {
		Requests int64           `json:"requests"`
		Unknown  int64           `json:"unknown"`
		Usage    json.RawMessage `json:"usage"`
		Cost     json.Number     `json:"cost_usd"`
		Spent    int64           `json:"spent"`
		SpentUSD json.Number     `json:"spent_usd"`
		UnderWay int64           `json:"under_way"`
		Reserved int64           `json:"reserved"`
		Over     string          `json:"over"`
	} `json:"sum"`
}

// dear returns a setup in which a million tokens cost ten dollars, with one limit.
func dear(b gateway.Bound) func(*gateway.Setup) {
	ten := 10 * usage.Dollar
	price := &usage.Price{Rate: usage.Rate{Input: ten, Cached: ten, CacheWrite: ten, Output: ten, Thinking: ten}}
	return func(s *gateway.Setup) {
		s.Call.Budget.Bounds = []gateway.Bound{b}
		for i := range s.Providers {
			s.Providers[i].Prices = map[string]*usage.Price{"m": price}
		}
	}
}

// end reads the log to its end, after an optional signal.
func (s *started) end(t *testing.T, signal syscall.Signal) (lines, size int, last newest) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return lines, size, last
		}
		last = newest{}
		if err := json.Unmarshal(line, &last); err != nil {
			t.Fatalf("line of the log: got %q, error %v, want JSON", line, err)
		}
		lines, size = lines+1, size+len(line)
	}
}

// tellsTokens is a Gemini server that reports a number of tokens for each response.
func tellsTokens(t *testing.T, tokens int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		fmt.Fprintf(w, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":%d}}`, tokens-1)
	}))
	t.Cleanup(s.Close)
	return s
}

const generate = "/c1/gemini/v1beta/models/m:generateContent"

// The log stays far below the engine's limit, however many requests a role makes without reaching the
// provider, and the newest line has the sums.
func TestAFloodHidesNothing(t *testing.T) {
	const many = 1500
	long := strings.Repeat(`"<`, 500)
	proxy := " HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer " + token + "\r\n\r\n"
	knows := " HTTP/1.1\r\nHost: x\r\nX-Goog-Api-Key: " + token + "\r\n"
	for name, request := range map[string]string{
		"self-answered":  "GET /c1/gemini/v1beta/models" + knows + "\r\n",
		"wrong path":     "GET /c1/gemini/" + long + "" + knows + "\r\n",
		"long method":    strings.Repeat("M", 2000) + " /c1/gemini/x" + knows + "\r\n",
		"no token":       "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no HTTP at all": "nonsense\r\n\r\n",
		"refused tunnel": "CONNECT " + strings.Repeat("a.", 500) + "example:443" + proxy,
		"inner tunnel":   "CONNECT 10.0.0.1:443" + proxy,
		"aborted":        "POST " + generate + "" + knows + "Content-Length: 9\r\n\r\n{",
		"counted":        "POST /c1/gemini/v1beta/models/m:countTokens" + knows + "Content-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound := int64(350_000)
			s := launch(t, tellsTokens(t, 300_000).URL, dear(gateway.Bound{Of: "call", Tokens: &bound}),
				func(s *gateway.Setup) { s.Connect = []string{"10.0.0.1:443"} })
			go func() { // the log is read immediately, as by an engine
				if status, words := s.ask(t, generate, "{}"); status != http.StatusOK {
					t.Errorf("response: got %d %s, want %d", status, words, http.StatusOK)
				}
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() { flood(t, s.listen, request, many/20) })
				}
				all.Wait()
				_ = s.cmd.Process.Signal(syscall.SIGTERM)
			}()
			lines, size, last := s.end(t, syscall.SIGCONT)
			if got := last.Sum; last.Kind != gateway.Ended || got.Spent != 300_000 || got.Requests != 1 || got.SpentUSD != "3" {
				t.Errorf("newest line: got %+v, want the end with 1 request, 300000 tokens and 3 USD", last)
			}
			if lines > 600 || size > 2<<20 {
				t.Errorf("log after %d requests: got %d lines, %d bytes, want at most 600 and %d",
					many, lines, size, 2<<20)
			}
		})
	}
}

// flood sends a request repeatedly, on new connections if the gateway closes them.
func flood(t *testing.T, addr, request string, times int) {
	for range times {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, request)
		if strings.HasSuffix(request, "{") { // the rest is never sent
			_ = c.(*net.TCPConn).CloseWrite()
		}
		_, _ = bufio.NewReader(c).ReadString('\n')
		c.Close()
	}
}

// Parallel requests start only while their maximums fit into a limit, so that it is exceeded by at
// most one response. Waiting requests fail only when it is spent.
func TestACapHoldsForParallelRequests(t *testing.T) {
	one := usage.Dollar
	for name, body := range map[string]string{
		"with its maximum":  `{"generationConfig":{"maxOutputTokens":50000}}`,
		"with no maximum":   `{}`,
		"with many answers": `{"generationConfig":{"maxOutputTokens":10,"candidateCount":5000}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := launch(t, tellsTokens(t, 50_000).URL, dear(gateway.Bound{Of: "phase", USD: &one})) // 0.5 USD each
			var answered, refused atomic.Int64
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					switch status, words := s.ask(t, generate, body); {
					case status == http.StatusOK:
						answered.Add(1)
					case status == http.StatusForbidden && strings.Contains(words, "budget of this phase is reached"):
						refused.Add(1)
					default:
						t.Errorf("response: got %d %s, want %d or a refusal for the budget",
							status, words, http.StatusOK)
					}
				})
			}
			all.Wait()
			_, _, last := s.end(t, syscall.SIGTERM)
			got := fmt.Sprint(answered.Load(), refused.Load(), " ", last.Sum.SpentUSD, " ", last.Sum.UnderWay)
			if got != "2 38 1 0" {
				t.Errorf("answered, refused, spent, under way: %s; want 2 38 1 0", got)
			}
			if !strings.Contains(last.Sum.Over, "budget of this phase is reached") {
				t.Errorf("budget in the newest line: got %q, want the one of this phase", last.Sum.Over)
			}
		})
	}
}

// A request that the provider has read may cost something, however it ends: it counts as its maximum,
// with an unknown cost.
func TestUnansweredRequestsAreUnknown(t *testing.T) {
	const most = 700
	body := fmt.Sprintf(`{"model":"m","max_completion_tokens":%d,"max_tokens":1,"n":2}`, most)
	want := len(body) + 2*most
	for name, serve := range map[string]http.HandlerFunc{
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"choices":`)
		},
		"silent about its usage": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"choices":[]}`)
		},
		"behind a forwarder": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(gateway.NoAnswer, gateway.Asked)
			w.WriteHeader(http.StatusBadGateway)
		},
		"in an error at its end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"error\":{\"message\":\"x\"}}\n\n")
		},
		"left by the client": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan bool, 1)
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				_, _ = io.Copy(io.Discard, q.Body)
				if begun <- true; serve == nil {
					<-q.Context().Done()
					return
				}
				serve(w, q)
			}))
			defer provider.Close()
			bound := int64(1 << 40)
			s := launch(t, provider.URL, dear(gateway.Bound{Of: "call", Tokens: &bound}))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			at := "http://" + s.listen + "/c1/openai-chat" + paths["openai-chat"]
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer "+token)
			go func() {
				<-begun
				if serve == nil {
					leave()
				}
			}()
			if resp, err := http.DefaultClient.Do(q); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			s.line(t)
			_, _, last := s.end(t, syscall.SIGTERM)
			if got := last.Sum; got.Requests != 1 || got.Unknown != 1 || got.Spent != int64(want) || got.Cost != "" {
				t.Errorf("newest line: got %+v, want 1 unknown request and %d tokens without a cost", last, want)
			}
		})
	}
}

// A gateway that is killed during a request has already reserved its maximum.
func TestAKilledGatewayHasReserved(t *testing.T) {
	begun := make(chan bool)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		begun <- true
		<-q.Context().Done()
	}))
	defer provider.Close()
	bound := int64(1 << 40)
	s := launch(t, provider.URL, dear(gateway.Bound{Of: "call", Tokens: &bound}))
	body := []byte(`{"generationConfig":{"maxOutputTokens":5000}}`)
	go func() {
		resp, err := http.Post("http://"+s.listen+generate+"?key="+token, "application/json", bytes.NewReader(body))
		if err == nil {
			resp.Body.Close()
			t.Errorf("response of a killed gateway: got status %d, want none", resp.StatusCode)
		}
	}()
	<-begun
	if _, _, last := s.end(t, syscall.SIGKILL); last.Sum.UnderWay != 1 || last.Sum.Reserved != int64(5000+len(body)) {
		t.Errorf("newest line: got %+v, want 1 request under way and %d reserved tokens", last, 5000+len(body))
	}
}
