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
	"abl/internal/usage"
)

// server handles the requests of a role during one call.
type server struct {
	Setup
	providers map[string]*provider
	budget    *budget
	journal   *journal
	transport http.RoundTripper
	dialer    Dialer
	secrets   []string        // that no line of the log may contain; only commands add to them
	ctx       context.Context // ends with the call
	end       context.CancelCauseFunc

	slots   chan struct{} // one for each current request
	tunnels chan struct{}
	bodies  atomic.Int64            // bytes of the bodies in memory
	useless atomic.Pointer[lasting] // set if no request of the call can succeed
	heard   atomic.Bool             // a provider has responded
	unheard atomic.Int32            // requests that reached no provider before the first response
	busy    sync.WaitGroup
	look    sync.Mutex // checks one body at a time, because a check needs memory in addition to the body
}

// exchange is one request with its response.
type exchange struct {
	*server
	*verdict
	w     http.ResponseWriter
	r     *http.Request
	begun time.Time
	most  amount // the maximum cost
	usage *usage.Count
	cost  *usage.USD
}

// ServeHTTP handles one request and writes its line.
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
		x.respond(http.StatusOK, modelList(x.provider.Models))
	default:
		x.within(x.slots, "%d requests are under way", x.forward)
	}
	if x.Refused {
		x.fail(x.Status, "abl's gateway refuses this request: "+x.reason)
	}
	x.TotalMS = time.Since(x.begun).Milliseconds()
	s.log(Entry{Kind: kind, Reason: x.reason, Req: &x.Request, Usage: x.usage, Cost: x.cost})
}

// fail responds with an error in the form of the API. It closes the connection, since further
// requests on it come from the same client.
func (x *exchange) fail(status int, message string) {
	h := x.w.Header()
	h.Set("Connection", "close")
	switch status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusProxyAuthRequired:
		h.Set("Proxy-Authenticate", `Basic realm="abl"`)
	}
	x.respond(status, errorBody(meter.API(x.Provider), status, message))
}

// respond sends a response of the gateway itself.
func (x *exchange) respond(status int, body []byte) {
	x.Status = status
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	n, err := x.w.Write(body)
	x.Out += int64(n)
	x.Aborted = x.Aborted || err != nil
}

// The reasons why a request ends before its response.
var (
	errCallOver = errors.New("the call is over")
	errTime     = errors.New("the provider was silent or slow, and the request took too long")
	errIdle     = errors.New("the provider stopped sending")
	errLong     = errors.New("it is longer than the limit")
)

// within calls handle if one of the places is free. Otherwise it refuses the request.
func (x *exchange) within(places chan struct{}, full string, handle func()) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		handle()
	default:
		x.deny(http.StatusServiceUnavailable, fmt.Sprintf(full, cap(places)))
	}
}

// forward sends a request that passed the filter to the provider, within the bounds, and returns the
// response.
func (x *exchange) forward() {
	size := x.r.ContentLength
	defer x.bodies.Add(-size)
	if x.bodies.Add(size) > x.Limits.Bodies {
		x.deny(http.StatusServiceUnavailable, "the bodies of the current requests fill the memory")
		return
	}
	body, err := x.read()
	if err != nil {
		x.Aborted = true
		x.deny(http.StatusBadRequest, "the body is incomplete")
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

// read reads the whole body before anything is forwarded: net/http's server closes the body of a
// request at the first byte of its response. A transport that still reads it would then cut the
// response off.
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

// spend waits for the budget, sends the request, and charges its cost.
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
	x.Free = x.route.Free
	if x.Free {
		x.ask(ctx, end, body, t)
		return
	}
	// If the gateway is killed, this line shows the request.
	begun := x.Request
	x.log(Entry{Kind: Began, Req: &begun})
	paid := x.ask(ctx, end, body, t)
	spent := x.budget.charge(x.most, x.Model, paid)
	if paid != nil {
		x.Charged = paid.charged.tokens
	}
	x.Spent = spent.Spent
	if t.Price != nil {
		x.ChargedUSD, x.SpentUSD = new(usage.USD), spent.SpentUSD
		if paid != nil {
			x.ChargedUSD = &paid.charged.usd
		}
	}
}

var errFull = errors.New("the current requests may spend the rest of the budget, and none ended in time")

// admitted waits until the budget has room for the request. It refuses the request if the budget is
// reached or the wait is too long.
func (x *exchange) admitted(ctx context.Context, priced bool) bool {
	ctx, stop := context.WithTimeoutCause(ctx, span(x.Limits.HeadersMS), errFull)
	defer stop()
	why, err := x.budget.admit(ctx, x.most, priced)
	switch {
	case why != "":
		x.Over = true
		// 403 ends every CLI within seconds. After 429 they would retry.
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

// ask sends the request and relays the response. It returns the bill, nil if the provider charges
// nothing. A request that the provider may have read costs its maximum unless the provider reports
// another cost.
func (x *exchange) ask(ctx context.Context, end context.CancelCauseFunc, body []byte, t tariff) *bill {
	limit := time.AfterFunc(span(x.Limits.RequestMS), func() { end(errTime) })
	defer limit.Stop()
	unknown := &bill{charged: x.most}
	answer, err := x.transport.RoundTrip(x.request(ctx, body))
	x.HeadersMS = time.Since(x.begun).Milliseconds()
	if err != nil {
		x.unanswered(ctx, err)
		if FailedToDial(err) {
			return nil // the provider did not get the request
		}
		return unknown
	}
	defer answer.Body.Close()
	x.heard.Store(answer.Header.Get(NoAnswer) == "" || x.heard.Load())
	if far := answer.Header.Get(NoAnswer); far != "" {
		// A part of the forwarder's message is enough.
		words, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords))
		x.noResponse(strings.TrimSpace(string(words)), http.StatusBadGateway, outcome.Network, far == NotAsked)
		if far == NotAsked {
			return nil
		}
		return unknown
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		// Another server responds, such as a login portal or a wrong address.
		x.troubled(outcome.Unavailable, fmt.Sprintf("the provider responds %d, and the gateway follows no redirect",
			answer.StatusCode))
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

// billed returns the bill of a relayed response.
func (x *exchange) billed(body int, t tariff, status int, m *meter.Meter) *bill {
	used := m.Usage()
	x.usage = &used
	x.Finish, x.Calls = m.Finish(), m.Calls()
	failed := status >= http.StatusBadRequest
	// Gemini reports usage in every event, so the usage of a cut response is incomplete.
	x.Part = x.provider.Kind == meter.Gemini && (x.Cut || !failed && x.Trouble != "") || !failed && x.endless(m)
	if !x.Part && !x.route.Free {
		x.cost = t.cost(used)
	}
	if failed && !used.Known() && !meter.GaveUp(status) {
		return nil // providers do not charge for errors
	}
	most := x.most
	if passed := t.most(body, m.Passed()); used.Candidates == nil && used.Total == nil {
		most = amount{max(most.tokens, passed.tokens), max(most.usd, passed.usd)}
	}
	_, whole := used.All()
	if t.Price != nil {
		whole = x.cost != nil
	}
	return &bill{t.charge(used, x.Part, most), used, x.cost, whole && !x.Part}
}

// request returns the request for the provider.
func (x *exchange) request(ctx context.Context, body []byte) *http.Request {
	// These arguments are valid.
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
	q.URL, q.Header = &to, upstreamHeader(x.r.Header, x.provider)
	return q
}

// unanswered reports to the client why there is no response, if the client is still connected.
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
		x.noResponse(err.Error(), http.StatusBadGateway, outcome.Network, FailedToDial(err))
	case FailedToDial(err):
		x.noResponse(err.Error(), http.StatusGatewayTimeout, outcome.Network, true)
	default:
		x.noResponse("it was silent: "+err.Error(), http.StatusGatewayTimeout, outcome.Unavailable, false)
	}
}

// stopped records why a request ended before its response. It returns false if the provider ended it.
func (x *exchange) stopped(cause error) bool {
	switch cause {
	case nil:
		return false
	case errTime, errIdle:
		x.troubled(outcome.Unavailable, cause.Error())
	case errLong:
		x.troubled(outcome.Unavailable, "the provider's response is incomplete: "+cause.Error())
	case errCallOver:
		x.Aborted, x.reason = true, cause.Error()
	default:
		x.Aborted, x.reason = true, "the client left"
	}
	return true
}

// FailedToDial reports whether an error means that the request did not reach the server.
func FailedToDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, proxy := errors.AsType[proxyError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect") || proxy || untrusted
}

// noResponse reports to the client that the provider sent no response. unsent is set if the request
// did not reach the provider. After several of these it refuses all further requests of the call.
func (x *exchange) noResponse(why string, status int, class outcome.Outcome, unsent bool) {
	x.troubled(class, "the provider did not respond: "+why)
	if unsent && x.givesUp() {
		reason := x.journal.secrets.String(x.reason)
		x.useless.Store(&lasting{reason, time.Unix(x.Call.Deadline, 0)})
		x.fail(http.StatusForbidden, reason)
		x.Status = status // the log has the provider's failure, not the refusal
		return
	}
	x.fail(status, "the provider did not respond")
}

// The limits before the first response of a run: so many requests that reached no provider, or one
// that took so long, end the call. Later failures are temporary, and the agent retries.
const (
	mostUnheard    = 3
	longestUnheard = 5 * time.Second
)

// givesUp reports whether the agent should not retry.
func (x *exchange) givesUp() bool {
	if !x.First || x.heard.Load() {
		return false
	}
	return x.unheard.Add(1) >= mostUnheard || time.Since(x.begun) >= longestUnheard
}

// troubled records a fault of the provider.
func (x *exchange) troubled(class outcome.Outcome, words string) {
	x.Trouble, x.reason = class, words
}

// longSilence is the wait after which a client that leaves does so because the provider is silent.
const longSilence = 20 * time.Second

// failedWith records an error that the provider reported.
func (x *exchange) failedWith(how string, said meter.Problem) {
	x.troubled(said.Class, how+": "+strings.TrimSuffix(said.Words, "."))
	x.RetryMS, x.Paid = said.Retry.Milliseconds(), said.Paid
}

// maxWords bounds the part of an error that is read, in bytes.
const maxWords = 16 << 10

// lasting is an error that every request gets until a time.
type lasting struct {
	words string
	until time.Time
}

// failed records the problem in an error response. If no request of the call can succeed, it responds
// with 403, because every CLI ends at that. After other statuses they wait for hours or retry
// forever. If it returns false, the caller relays the response.
func (x *exchange) failed(end context.CancelCauseFunc, answer *http.Response) bool {
	late := time.AfterFunc(span(x.Limits.IdleMS), func() { end(errIdle) })
	// relay finds errors in the rest.
	head, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords))
	late.Stop()
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(head), answer.Body))
	now := time.Now()
	said := meter.Of(answer.StatusCode, answer.Header, head, now)
	x.failedWith(fmt.Sprintf("the provider responds %d", answer.StatusCode), said)
	// Some providers do not support a free request.
	if !said.Lasting() || x.route.Free {
		return false
	}
	l := lasting{x.provider.secret().String(x.reason), time.Unix(x.Call.Deadline, 0)}
	if said.Retry > 0 {
		l.until = now.Add(said.Retry)
		l.words += "; retry after " + l.until.UTC().Format(time.RFC3339)
	}
	x.useless.Store(&l)
	x.fail(http.StatusForbidden, l.words)
	x.Status = answer.StatusCode
	return true
}
