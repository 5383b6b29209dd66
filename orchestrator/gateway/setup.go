// Package gateway is the one way out of a role's network: it holds the providers'
// keys, lets through what an agent needs and nothing else, counts the tokens and
// keeps budgets. It runs in a container of its own, is told everything on standard
// input and tells everything on standard output, a line of JSON each.
package gateway

import (
	"slices"
	"time"

	"abl/orchestrator/gateway/api"
	"abl/orchestrator/prices"
)

// Secret is text that only its own wire shows.
type Secret string

// String hides the secret from whoever prints it.
func (Secret) String() string { return "[secret]" }

// GoString does so for %#v.
func (Secret) GoString() string { return "[secret]" }

// Setup is the first line on standard input.
type Setup struct {
	Listen    string     `json:"listen"` // "host:port"; port 0 takes a free one, which the ready line tells
	Call      Call       `json:"call"`
	Providers []Provider `json:"providers"`
	Connect   []string   `json:"connect,omitempty"` // "host:port" of registries, exact
	Inside    []string   `json:"inside,omitempty"`  // addresses of the engine's machine: no tunnel leads there, be they public
	CA        string     `json:"ca,omitempty"`      // PEM, trusted besides the container's own
	Proxy     string     `json:"proxy,omitempty"`   // on the way to the providers; the environment is not asked
	Limits    Limits     `json:"limits,omitzero"`
}

// Call is who may use the gateway now: one call of one role.
type Call struct {
	ID       string `json:"id"`    // the first part of every path
	Token    Secret `json:"token"` // what the role has for a key
	Deadline int64  `json:"deadline"`
	Budget   Budget `json:"budget,omitzero"`
}

// Budget is what the call may still spend, counted from its beginning. Nil is no
// bound; 0 admits nothing.
type Budget struct {
	Tokens   *int64  `json:"tokens,omitempty"`
	Requests *int64  `json:"requests,omitempty"`
	Bounds   []Bound `json:"bounds,omitempty"` // all of them hold
}

// Bound is a cap on more than this call, or on it under a name of its own.
type Bound struct {
	Of         string      `json:"of"` // whose it is, in a person's words: call, phase, project
	Tokens     *int64      `json:"tokens,omitempty"`
	USD        *prices.USD `json:"usd,omitempty"`
	UsedTokens int64       `json:"used_tokens,omitempty"` // before this call
	UsedUSD    prices.USD  `json:"used_usd,omitempty"`
}

// inMoney says whether a bound is in US dollars.
func (b Budget) inMoney() bool {
	return slices.ContainsFunc(b.Bounds, func(one Bound) bool { return one.USD != nil })
}

// Provider is one upstream and what may be asked of it. What is empty is as the
// API has it.
type Provider struct {
	Name     string      `json:"name"`               // the second part of every path
	API      string      `json:"api,omitempty"`      // gemini, anthropic, openai-responses or openai-chat; "" is the name
	Upstream string      `json:"upstream,omitempty"` // base address, with the version for OpenAI's
	Key      Secret      `json:"key,omitempty"`      // "" where the upstream needs none
	Auth     string      `json:"auth,omitempty"`     // "bearer" or the header that holds the key
	Models   []string    `json:"models"`             // exact names
	Routes   []api.Route `json:"routes,omitempty"`   // instead of the API's
	Queries  []string    `json:"queries,omitempty"`  // names passed on besides the API's
	Headers  []string    `json:"headers,omitempty"`  // names passed on besides the API's

	// Prices of models; one without is metered, and holds no budget in money.
	Prices map[string]prices.Price `json:"prices,omitempty"`
}

// Limits bound what a role can make the gateway do. 0 is the default.
type Limits struct {
	Body        int64 `json:"body,omitempty"`        // bytes of one request
	Bodies      int64 `json:"bodies,omitempty"`      // bytes of all requests held at once
	Answer      int64 `json:"answer,omitempty"`      // bytes of one answer
	Concurrent  int   `json:"concurrent,omitempty"`  // requests at once
	Connections int   `json:"connections,omitempty"` // open at once
	HeadersMS   int64 `json:"headers_ms,omitempty"`  // until an upstream answers
	IdleMS      int64 `json:"idle_ms,omitempty"`     // between two pieces of an answer
	RequestMS   int64 `json:"request_ms,omitempty"`  // one request in all
	ReadMS      int64 `json:"read_ms,omitempty"`     // until a request's body is there
	Tunnel      int64 `json:"tunnel,omitempty"`      // bytes of one tunnel, both ways
	TunnelMS    int64 `json:"tunnel_ms,omitempty"`   // one tunnel in all
	Tunnels     int   `json:"tunnels,omitempty"`     // open at once
}

// Command is a later line on standard input: exactly one of its members is set.
type Command struct {
	Call   *Call   `json:"call,omitempty"`   // the next call; the former one's token is worth nothing from here on
	Budget *Budget `json:"budget,omitempty"` // new bounds for the call that is on
	Stop   bool    `json:"stop,omitempty"`
}

// filled returns the limits with the defaults in place.
func (l Limits) filled() Limits {
	const mib = 1 << 20
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	for _, n := range []struct {
		to    *int64
		usual int64
	}{
		{&l.Body, 20 * mib}, {&l.Bodies, 48 * mib}, {&l.Answer, 64 * mib}, {&l.Tunnel, 2048 * mib},
		{&l.HeadersMS, ms(5 * time.Minute)}, {&l.IdleMS, ms(5 * time.Minute)}, {&l.RequestMS, ms(20 * time.Minute)},
		{&l.ReadMS, ms(time.Minute)}, {&l.TunnelMS, ms(20 * time.Minute)},
	} {
		if *n.to == 0 {
			*n.to = n.usual
		}
	}
	for _, n := range []struct {
		to    *int
		usual int
	}{{&l.Concurrent, 64}, {&l.Connections, 1024}, {&l.Tunnels, 32}} {
		if *n.to == 0 {
			*n.to = n.usual
		}
	}
	return l
}

// span is a limit in milliseconds as a duration.
func span(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
