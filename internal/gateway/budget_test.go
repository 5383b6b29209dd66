package gateway

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func count(n int64) *int64 { return &n }

func tokenBound(n int64) []Bound { return []Bound{{Of: "call", Tokens: &n}} }

func TestBudgetIsNeverPassedUnknowingly(t *testing.T) {
	b := newBudget(Budget{Bounds: tokenBound(100)})
	reached := "the budget of this call is reached: %d of 100 tokens are spent"
	for i, s := range []struct {
		admit, settle, charge int64 // an admission's maximum, or a settlement
		want                  string
	}{
		{admit: 600, want: ""}, // nothing else is under way
		{admit: 1, want: "waits"},
		{admit: 0, want: ""}, // a free one
		{settle: 600, charge: 30, want: "30"},
		{admit: 60, want: ""},
		{admit: 10, want: ""}, // 30, 60 and 10 are 100
		{admit: 1, want: "waits"},
		{settle: 10, charge: 70, want: "100"},
		{admit: 1, want: fmt.Sprintf(reached, 100)},
		{settle: 60, charge: math.MaxInt64, want: fmt.Sprint(int64(math.MaxInt64))}, // a nonsense is no credit
		{admit: 0, want: fmt.Sprintf(reached, int64(math.MaxInt64))},
	} {
		got, wait := "", (<-chan struct{})(nil)
		if s.settle > 0 {
			got = fmt.Sprint(b.charge(amount{tokens: s.settle}, "m", &bill{charged: amount{tokens: s.charge}}).Spent)
		} else if got, wait = b.try(amount{tokens: s.admit}, false); wait != nil {
			got = "waits"
		}
		if got != s.want {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
	if b.reserved != (amount{}) || b.sum.UnderWay != 0 {
		t.Errorf("reserved amount: got %+v for %d requests, want nothing for 0", b.reserved, b.sum.UnderWay)
	}
}

func TestBudgetEndsTheCall(t *testing.T) {
	u := serve(t, say(http.StatusOK, "text/event-stream", event))
	s := setup(u.URL)
	s.Call.Budget.Bounds = tokenBound(12)
	r := start(t, s)
	for _, want := range []int{200, 200, 403} {
		if got := r.post(gen, shortBody); got.status != want {
			t.Fatalf("got %+v, want %d", got, want)
		}
		e := r.next(Requested)
		if want == 403 && (e.Reason != "the budget of this call is reached: 12 of 12 tokens are spent" || e.Usage != nil) {
			t.Errorf("got %+v, want the budget of 12 tokens as the reason, and no usage", e)
		}
	}
	got := r.post("/anthropic/v1/messages", modelled)
	if got.status != http.StatusForbidden || !strings.Contains(got.body, `"type":"permission_error"`) || !strings.Contains(got.body, "budget") {
		t.Errorf("got %+v, want 403 with a permission_error that names the budget", got)
	}
	r.send(`{"budget":{"bounds":[{"of":"call","tokens":13}]}}`)
	r.next(Obeyed)
	if got := r.post(gen, shortBody); got.status != http.StatusOK {
		t.Errorf("request under a raised budget: got %+v, want status 200", got)
	}
	if n := len(u.requests()); n != 3 {
		t.Errorf("requests to the provider: got %d, want 3", n)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	u := serve(t, say(http.StatusInternalServerError, "application/json", "{}"))
	s := setup(u.URL)
	s.Call.Budget.Requests = count(3)
	r := start(t, s)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { r.post("/gemini/v1beta/models/m1:countTokens", "{}") })
	}
	all.Wait()
	if n := len(u.requests()); n != 3 {
		t.Errorf("requests to the provider: got %d, want 3", n)
	}
}

// A request waits for one that leaves it no room. It begins when that one ends, or when the
// cap is raised. It is refused when its client leaves, and after a while.
func TestWaitingForRoom(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(r *rig, waiting net.Conn, release chan<- bool)
		status int
	}{
		"the other ends":    {func(_ *rig, _ net.Conn, release chan<- bool) { release <- true }, http.StatusOK},
		"the cap is raised": {func(r *rig, _ net.Conn, _ chan<- bool) { r.send(`{"budget":{}}`) }, http.StatusOK},
		"the client leaves": {func(_ *rig, waiting net.Conn, _ chan<- bool) { waiting.Close() }, http.StatusBadRequest},
		"nothing changes":   {func(*rig, net.Conn, chan<- bool) {}, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, release := make(chan bool, 1), make(chan bool, 1)
			first <- true
			u := serve(t, func(w http.ResponseWriter, q *http.Request) {
				select {
				case <-first:
					flush(w)
					select {
					case <-release:
					case <-q.Context().Done():
					}
				default:
				}
				io.WriteString(w, event)
			})
			s := setup(u.URL)
			s.Call.Budget.Bounds = tokenBound(500)
			if c.status == http.StatusServiceUnavailable {
				s.Limits.HeadersMS = 50
			}
			r := start(t, s)
			busy, waiting := dial(t, r.addr), dial(t, r.addr)
			io.WriteString(busy, raw(gen))
			readSome(t, busy)
			io.WriteString(waiting, raw(gen))
			if got := r.post("/gemini/v1beta/models/m1:countTokens", "{}"); got.status != http.StatusOK {
				t.Errorf("free request while another waits: got %+v, want status 200", got)
			}
			c.then(r, waiting, release)
			if c.status == http.StatusOK {
				if got := readSome(t, waiting); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
					t.Errorf("waiting request: got %q, want status 200", got)
				}
				return
			}
			for e := r.next(Requested); e.Req.Class != "stream"; {
				e = r.next(Requested)
				if e.Req.Status != c.status || !e.Req.Refused || e.Sum.UnderWay != 1 || e.Sum.Requests != 0 {
					t.Errorf("waiting request: got %+v, %+v, want a refusal with status %d, 1 under way and 0 counted",
						e.Req, e.Sum, c.status)
				}
			}
		})
	}
}

func TestUsage(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.Header.Get("Accept") == "untold":
			io.WriteString(w, "{}")
		case q.Header.Get("Accept") == "error":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			io.WriteString(w, event)
		}
	})
	r := start(t, setup(u.URL))
	for _, path := range []string{gen, gen, "/gemini/v1beta/models/m1:countTokens", "/gemini/none"} {
		r.post(path, shortBody)
	}
	for _, does := range []string{"untold", "error"} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/"+callID+gen, strings.NewReader(shortBody))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"X-Api-Key": {callTok}, "Accept": {does}}
		r.do(q)
	}
	r.stop()
	used := r.next(Ended).Sum
	got := fmt.Sprintf("%s %s %d/%d", used.Model, numbers(Entry{Usage: &used.Usage}), used.Requests, used.Unknown)
	if want := "m1 input:10,cached:-,candidates:-,thoughts:-,tool:-,total:12 3/1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
