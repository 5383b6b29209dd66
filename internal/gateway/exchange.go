package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/tokens"
)

// server answers the role for as long as the call is on.
type server struct {
	Setup
	providers map[string]*provider
	budget    *budget
	journal   *journal
	transport http.RoundTripper
	dialer    Dialer
	secrets   []string        // that no line of the log may hold; commands alone add to them
	ctx       context.Context // the call's life
	end       context.CancelCauseFunc

	slots   chan struct{} // one a request under way
	tunnels chan struct{}
	bodies  atomic.Int64            // bytes of those that are held
	useless atomic.Pointer[lasting] // set: it is of no use to ask the call's model
	heard   atomic.Bool             // a provider has answered
	unheard atomic.Int32            // requests that reached nobody before one did
	busy    sync.WaitGroup
	look    sync.Mutex // at one body after the other: each look takes some of its size once more
}

// exchange is one request on its way through.
type exchange struct {
	*server
	*verdict
	w     http.ResponseWriter
	r     *http.Request
	begun time.Time
	most  amount // that it can cost
	usage *tokens.Count
	cost  *prices.USD
}

// ServeHTTP takes one request to its end and writes its line.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Done()
	x, kind := &exchange{server: s, verdict: s.decide(r), w: w, r: r, begun: time.Now()}, Requested
	if r.Method == http.MethodConnect {
		kind = Tunneled
	}
	switch {
	case x.Refused:
	case kind == Tunneled:
		x.within(x.tunnels, "%d tunnels are open", x.connect)
	case x.local:
		x.answer(http.StatusOK, modelList(x.provider.Models))
	default:
		x.within(x.slots, "%d requests are under way", x.forward)
	}
	if x.Refused {
		x.fail(x.Status, "abl's gateway refuses this request: "+x.reason)
	}
	x.TotalMS = time.Since(x.begun).Milliseconds()
	s.tell(Entry{Kind: kind, Reason: x.reason, Req: &x.Request, Usage: x.usage, Cost: x.cost})
}

// fail answers with an error in the provider's own words, and ends the connection: what
// else is on it is the same stranger's.
func (x *exchange) fail(status int, message string) {
	h := x.w.Header()
	h.Set("Connection", "close")
	switch status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusProxyAuthRequired:
		h.Set("Proxy-Authenticate", `Basic realm="abl"`)
	}
	x.answer(status, errorWords(meter.API(x.Provider), status, message))
}

func (x *exchange) answer(status int, body []byte) {
	x.Status = status
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	n, err := x.w.Write(body)
	x.Out += int64(n)
	x.Aborted = x.Aborted || err != nil
}

// Why a request ends before its answer does.
var (
	errCallOver = errors.New("the call is over")
	errTime     = errors.New("the provider was silent or slow: the request took too long")
	errIdle     = errors.New("the provider fell silent")
	errLong     = errors.New("the answer is longer than one may be")
)

// within answers as long as one of the places is free.
func (x *exchange) within(places chan struct{}, taken string, answer func()) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		answer()
	default:
		x.deny(http.StatusServiceUnavailable, fmt.Sprintf(taken, cap(places)))
	}
}

// forward takes a request that the filter has passed through the bounds, to the
// provider and back.
func (x *exchange) forward() {
	size := x.r.ContentLength
	defer x.bodies.Add(-size)
	if x.bodies.Add(size) > x.Limits.Bodies {
		x.deny(http.StatusServiceUnavailable, "the bodies of the requests under way fill the memory")
		return
	}
	body, err := x.read()
	if err != nil {
		x.Aborted = true
		x.deny(http.StatusBadRequest, "the body did not arrive whole")
		return
	}
	x.look.Lock()
	x.verdict.read(body)
	x.look.Unlock()
	if x.Refused {
		return
	}
	if said := x.useless.Load(); said != nil && time.Now().Before(said.until) {
		x.Held = true
		x.deny(http.StatusForbidden, said.words)
		return
	}
	x.spend(body)
}

// read takes the whole body before anything is forwarded: net/http's server closes
// a request's body at the first byte of its answer, under the hands of a transport
// that still reads it, which cuts answers short.
func (x *exchange) read() ([]byte, error) {
	control := http.NewResponseController(x.w)
	if err := control.SetReadDeadline(time.Now().Add(span(x.Limits.ReadMS))); err != nil {
		return nil, err
	}
	body := make([]byte, x.r.ContentLength)
	n, err := io.ReadFull(x.r.Body, body)
	x.In = int64(n)
	if err != nil {
		return nil, err
	}
	return body, control.SetReadDeadline(time.Time{})
}

// spend holds the request to the budget and asks the provider.
func (x *exchange) spend(body []byte) {
	ctx, end := context.WithCancelCause(x.r.Context())
	defer end(nil)
	defer context.AfterFunc(x.ctx, func() { end(errCallOver) })()
	t := tariff{x.provider.Prices[x.Model], bytes.Contains(body, []byte(`"1h"`))} // the ttl of Anthropic's cache_control
	length, number := cmp.Or(x.MaxTokens, x.provider.Longest), max(x.answers, 1)
	prompt := len(body)
	if x.refers {
		prompt = max(prompt, x.provider.Context)
	}
	x.most = t.most(prompt, min(length, math.MaxInt64/number)*number)
	if x.route.Free {
		x.most = amount{}
	}
	if !x.admitted(ctx, t.Price != nil) {
		return
	}
	if x.Free = x.route.Free; x.Free {
		x.ask(ctx, end, body, t)
		return
	}
	// What is under way when a gateway is killed has a line by then.
	begun := x.Request
	x.tell(Entry{Kind: Began, Req: &begun})
	paid := x.ask(ctx, end, body, t)
	spent := x.budget.settle(x.most, x.Model, paid)
	if paid != nil {
		x.Charged = paid.charged.tokens
	}
	x.Spent = spent.Spent
	if t.Price != nil {
		x.ChargedUSD, x.SpentUSD = new(prices.USD), spent.SpentUSD
		if paid != nil {
			x.ChargedUSD = &paid.charged.usd
		}
	}
}

var errFull = errors.New("the requests under way may spend all that is left of the budget; none ended in time")

// admitted waits until the budget has room for the request. It refuses one for which there
// is none.
func (x *exchange) admitted(ctx context.Context, priced bool) bool {
	ctx, stop := context.WithTimeoutCause(ctx, span(x.Limits.HeadersMS), errFull)
	defer stop()
	why, err := x.budget.admit(ctx, x.most, priced)
	switch {
	case why != "":
		x.Over = true
		// 403 ends every CLI within seconds; 429 would have them retry.
		x.deny(http.StatusForbidden, why)
	case errors.Is(err, errFull):
		x.deny(http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, errCallOver):
		x.deny(http.StatusForbidden, err.Error())
	case err != nil:
		x.Aborted = true
		x.deny(http.StatusBadRequest, "the client left")
	}
	return !x.Refused
}

// ask sends the request and passes the answer on. It returns the bill, nil if the provider
// charges nothing. A request that the provider may have read costs its maximum until the
// provider reports something else.
func (x *exchange) ask(ctx context.Context, end context.CancelCauseFunc, body []byte, t tariff) *bill {
	limit := time.AfterFunc(span(x.Limits.RequestMS), func() { end(errTime) })
	defer limit.Stop()
	unknown := &bill{charged: x.most}
	answer, err := x.transport.RoundTrip(x.request(ctx, body))
	x.HeadersMS = time.Since(x.begun).Milliseconds()
	if err != nil {
		x.unanswered(ctx, err)
		if FailedToDial(err) {
			return nil // nothing was asked
		}
		return unknown
	}
	defer answer.Body.Close()
	x.heard.Store(answer.Header.Get(NoAnswer) == "" || x.heard.Load())
	if far := answer.Header.Get(NoAnswer); far != "" {
		// Half of a forwarder's words say as much as all of them.
		words, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords))
		x.noAnswer(strings.TrimSpace(string(words)), http.StatusBadGateway, outcome.Network, far == NotAsked)
		if far == NotAsked {
			return nil
		}
		return unknown
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		// Whoever stands in the provider's place: a portal, a wrong address.
		x.troubled(outcome.Unavailable, fmt.Sprintf("the provider answers %d; the gateway follows no redirect", answer.StatusCode))
		x.fail(http.StatusBadGateway, x.reason)
		return nil
	}
	if answer.StatusCode >= http.StatusBadRequest && x.failed(end, answer) {
		if meter.GaveUp(answer.StatusCode) {
			return unknown
		}
		return nil
	}
	return x.billed(len(body), t, answer.StatusCode, x.relay(ctx, end, answer))
}

// billed returns the bill of an answer that was passed on.
func (x *exchange) billed(body int, t tariff, status int, m *meter.Meter) *bill {
	usage := m.Usage()
	x.usage = &usage
	x.Finish, x.Calls = m.Finish(), m.Calls()
	failed := status >= http.StatusBadRequest
	// Gemini reports usage as it goes, so the usage of an answer that is cut is never all of it.
	x.Part = x.provider.Kind == meter.Gemini && (x.Cut || !failed && x.Trouble != "") || !failed && x.endless(m)
	if !x.Part && !x.route.Free {
		x.cost = t.cost(usage)
	}
	if failed && !usage.Known() && !meter.GaveUp(status) {
		return nil // providers take nothing for an error
	}
	most := x.most
	if passed := t.most(body, m.Passed()); usage.Candidates == nil && usage.Total == nil {
		most = amount{max(most.tokens, passed.tokens), max(most.usd, passed.usd)}
	}
	_, whole := usage.All()
	if t.Price != nil {
		whole = x.cost != nil
	}
	return &bill{t.charge(usage, x.Part, most), usage, x.cost, whole && !x.Part}
}

// request is what the provider gets to see.
func (x *exchange) request(ctx context.Context, body []byte) *http.Request {
	// It fails of nothing that stands here.
	q, _ := http.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
	to := *x.provider.base
	to.Path += x.path
	to.RawQuery = x.query
	if len(x.provider.Query) > 0 {
		fixed := url.Values{}
		for name, value := range x.provider.Query {
			fixed.Set(name, string(value))
		}
		to.RawQuery = strings.TrimPrefix(x.query+"&"+fixed.Encode(), "&")
	}
	q.URL, q.Header = &to, outward(x.r.Header, x.provider)
	return q
}

// unanswered tells the client why there is no answer, if it is still there.
func (x *exchange) unanswered(ctx context.Context, err error) {
	late := net.Error(nil)
	switch cause := context.Cause(ctx); {
	case x.stopped(cause) && errors.Is(cause, errCallOver):
		x.fail(http.StatusForbidden, x.reason)
	case errors.Is(cause, errTime):
		x.fail(http.StatusGatewayTimeout, x.reason)
	case cause != nil && !x.Aborted:
		x.fail(http.StatusForbidden, x.reason)
	case x.Aborted && time.Since(x.begun) > longSilence:
		x.troubled(outcome.Unavailable, "the provider was silent, and the client left")
	case x.Aborted:
	case !errors.As(err, &late) || !late.Timeout():
		x.noAnswer(err.Error(), http.StatusBadGateway, outcome.Network, FailedToDial(err))
	case FailedToDial(err):
		x.noAnswer(err.Error(), http.StatusGatewayTimeout, outcome.Network, true)
	default:
		x.noAnswer("it was silent: "+err.Error(), http.StatusGatewayTimeout, outcome.Unavailable, false)
	}
}

// stopped notes why a request ended before its answer did, if it was not by the provider.
func (x *exchange) stopped(cause error) bool {
	switch cause {
	case nil:
		return false
	case errTime, errIdle:
		x.troubled(outcome.Unavailable, cause.Error())
	case errLong:
		x.troubled(outcome.Unavailable, "the provider's answer has no end: "+cause.Error())
	case errCallOver:
		x.Aborted, x.reason = true, cause.Error()
	default:
		x.Aborted, x.reason = true, "the client left"
	}
	return true
}

// FailedToDial says that nobody was reached, so that nothing was asked.
func FailedToDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, proxy := errors.AsType[*proxyError](err)
	_, stranger := errors.AsType[*tls.CertificateVerificationError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect") || proxy || stranger
}

// noAnswer fails a request that got no answer. unasked is set if it reached nobody.
func (x *exchange) noAnswer(words string, status int, class outcome.Outcome, unasked bool) {
	x.troubled(class, "the provider gave no answer: "+words)
	if unasked && x.givesUp() {
		x.useless.Store(&lasting{x.hides(x.reason), time.Unix(x.Call.Deadline, 0)})
		x.fail(http.StatusForbidden, x.hides(x.reason))
		x.Status = status
		return
	}
	x.fail(status, "the provider gave no answer")
}

// hides takes the secrets of the setup out of words.
func (x *exchange) hides(words string) string { return x.journal.secrets.String(words) }

// Before any answer of a run, so many requests that reached nobody are enough, or one that took so
// long. Later ones are a failure that passes, and the agent asks again.
const (
	mostUnheard    = 3
	longestUnheard = 5 * time.Second
)

// givesUp reports whether it is of no use to let the agent ask again.
func (x *exchange) givesUp() bool {
	if !x.First || x.heard.Load() {
		return false
	}
	return x.unheard.Add(1) >= mostUnheard || time.Since(x.begun) >= longestUnheard
}

// troubled notes what is wrong with the provider.
func (x *exchange) troubled(class outcome.Outcome, words string) {
	x.Trouble, x.reason = class, words
}

// longSilence is how long a client has to have waited in vain before it is the
// provider's silence that made it leave.
const longSilence = 20 * time.Second

// wrong notes what an error of the provider's own tells.
func (x *exchange) wrong(how string, said meter.Told) {
	x.troubled(said.Class, how+": "+strings.TrimSuffix(said.Words, "."))
	x.RetryMS, x.Paid = said.Retry.Milliseconds(), said.Paid
}

// maxWords is how much of an error is read for what it says, in bytes.
const maxWords = 16 << 10

// lasting is an answer of a provider's that stands for every request until then.
type lasting struct {
	words string
	until time.Time
}

// failed notes what an error answer says is wrong. One after which no request of the
// call helps any more ends here: the agent gets a status with which every CLI ends at
// once, since on others they wait for hours, or ask again and again. False leaves the
// answer to be passed on.
func (x *exchange) failed(end context.CancelCauseFunc, answer *http.Response) bool {
	late := time.AfterFunc(span(x.Limits.IdleMS), func() { end(errIdle) })
	// What is wrong with the rest is found when it is passed on.
	head, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords))
	late.Stop()
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(head), answer.Body))
	now := time.Now()
	said := meter.Of(answer.StatusCode, answer.Header, head, now)
	x.wrong(fmt.Sprintf("the provider answers %d", answer.StatusCode), said)
	// A free request may be of a kind that the provider does not know.
	if !said.Lasting() || x.route.Free {
		return false
	}
	l := lasting{x.provider.secret().String(x.reason), time.Unix(x.Call.Deadline, 0)}
	if said.Retry > 0 {
		l.until = now.Add(said.Retry)
		l.words += "; it wants to be asked again after " + l.until.UTC().Format(time.RFC3339)
	}
	x.useless.Store(&l)
	x.fail(http.StatusForbidden, l.words)
	x.Status = answer.StatusCode
	return true
}
