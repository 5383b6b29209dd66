package gateway

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func count(n int64) *int64 { return &n }

func tokenBound(n int64) []Bound { return []Bound{{Of: "call", Tokens: &n}} }

func TestBudgetIsNeverPassedUnknowingly(t *testing.T) {
	b := budget{caps: Budget{Bounds: tokenBound(100)}}
	steps := []struct {
		admit, settle, charge int64 // an admission's estimate, or a settlement
		want                  string
	}{
		{admit: 60, want: ""},
		{admit: 60, want: ""}, // 60 under way are fewer than 100
		{admit: 1, want: "the budget of this call is reached: 0 tokens are spent and about 120 under way, of 100"},
		{settle: 60, charge: 30, want: "30"},
		{admit: 9, want: ""},
		{settle: 60, charge: 80, want: "110"},
		{settle: 9, charge: 0, want: "110"},
		{admit: 0, want: "the budget of this call is reached: 110 tokens are spent and about 0 under way, of 100"},
		{settle: 1, charge: math.MaxInt64, want: fmt.Sprint(int64(math.MaxInt64))}, // a nonsense is no credit
		{admit: 0, want: fmt.Sprintf("the budget of this call is reached: %d tokens are spent and about -1 under way, of 100", int64(math.MaxInt64))},
	}
	for i, s := range steps {
		got := ""
		if s.settle > 0 {
			got = fmt.Sprint(b.settle(amount{tokens: s.settle}, amount{tokens: s.charge}).tokens)
		} else {
			got = b.admit(amount{tokens: s.admit}, false)
		}
		if got != s.want {
			t.Errorf("step %d: %q, want %q", i, got, s.want)
		}
	}
}

func TestBudgetEndsTheCall(t *testing.T) {
	u := serve(t, say(http.StatusOK, "text/event-stream", event))
	s := setup(u.URL)
	s.Call.Budget.Bounds = tokenBound(12)
	r := start(t, s)
	for _, want := range []int{200, 200, 403} {
		if got := r.post(gen, someBody); got.status != want {
			t.Fatalf("%+v, want %d", got, want)
		}
		e := r.next(Requested)
		if want == 403 && (e.Reason != "the budget of this call is reached: 12 tokens are spent and about 0 under way, of 12" || e.Usage != nil) {
			t.Errorf("%+v", e)
		}
	}
	got := r.post("/anthropic/v1/messages", modelled)
	if got.status != http.StatusForbidden || !strings.Contains(got.body, `"type":"permission_error"`) || !strings.Contains(got.body, "budget") {
		t.Errorf("%+v", got)
	}
	r.send(`{"budget":{"bounds":[{"of":"call","tokens":13}]}}`)
	r.next(Obeyed)
	if got := r.post(gen, someBody); got.status != http.StatusOK {
		t.Errorf("a raised budget: %+v", got)
	}
	if n := len(u.requests()); n != 3 {
		t.Errorf("%d requests reached the provider", n)
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
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestWhatIsUnderWayCounts holds one request open: its estimate fills the budget.
func TestWhatIsUnderWayCounts(t *testing.T) {
	release := make(chan struct{})
	u := serve(t, func(w http.ResponseWriter, _ *http.Request) { flush(w); <-release; io.WriteString(w, event) })
	s := setup(u.URL)
	s.Call.Budget.Bounds = tokenBound(500)
	r := start(t, s)
	c := dial(t, r.addr)
	io.WriteString(c, raw(gen))
	readSome(t, c)
	if got := r.post(gen, someBody); got.status != http.StatusForbidden {
		t.Errorf("%+v", got)
	}
	close(release)
	r.next(Requested)
	if e := r.next(Requested); e.Req.Spent != 6 {
		t.Errorf("%+v", e.Req)
	}
	if got := r.post(gen, someBody); got.status != http.StatusOK {
		t.Errorf("what was under way still counts: %+v", got)
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
		r.post(path, someBody)
	}
	for _, does := range []string{"untold", "error"} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/"+callID+gen, strings.NewReader(someBody))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"X-Api-Key": {callTok}, "Accept": {does}}
		r.do(q)
	}
	r.stop()
	var log []Entry
	for e := range r.lines {
		log = append(log, e)
	}
	used := Usage(log, callID)
	got := fmt.Sprintf("%s %s %d/%d", used.Model, numbers(Entry{Usage: &used.Count}), used.Requests, used.Untold)
	if want := "m1 input:10,cached:-,candidates:-,thoughts:-,tool:-,total:12 3/1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if other := Usage(log, "another"); other != (Used{}) {
		t.Errorf("another call has %v", other)
	}
}
