package gateway

import (
	"abl/internal/prices"
	"abl/internal/tokens"
)

// Entry is one line on standard output. Every line has a number, one more than the
// line before, so that a reader who comes back sees what it has and what is lost.
type Entry struct {
	Seq    int64         `json:"seq"`
	Kind   string        `json:"kind"`
	At     string        `json:"at"` // RFC 3339, UTC, milliseconds
	Call   string        `json:"call,omitempty"`
	Reason string        `json:"reason,omitempty"` // why it was refused, cut or ended; what a command did
	Listen string        `json:"listen,omitempty"` // of the ready line
	Req    *Request      `json:"request,omitempty"`
	Usage  *tokens.Count `json:"usage,omitempty"`    // of a request that a provider answered; null for what it did not tell
	Cost   *prices.USD   `json:"cost_usd,omitempty"` // of that usage; left out where it or the price is unknown

	// Unlogged counts the refusals since the last line that have no line of their own.
	Unlogged int64 `json:"unlogged,omitempty"`
}

// The kinds of lines.
const (
	Ready     = "ready"   // it listens
	Requested = "request" // a request ended
	Tunneled  = "connect" // a tunnel ended
	Obeyed    = "command" // a command was carried out
	Nearly    = "budget"  // so much of a bound is spent that a person should know
	Noted     = "note"    // something is wrong
	Ended     = "end"     // the last line
)

// Request is what is told of a request or a tunnel.
type Request struct {
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	Method    string `json:"method"`
	Class     string `json:"class,omitempty"` // of path
	Host      string `json:"host,omitempty"`  // of a tunnel
	Status    int    `json:"status"`          // 0: nobody was there any more to be answered
	Refused   bool   `json:"refused,omitempty"`
	Over      bool   `json:"over,omitempty"`       // refused since the call's budget is reached
	Held      bool   `json:"held,omitempty"`       // refused since the provider has said that asking again is of no use
	Aborted   bool   `json:"aborted,omitempty"`    // the client did not wait for the end
	Cut       bool   `json:"cut,omitempty"`        // the answer has no end
	Broken    bool   `json:"broken,omitempty"`     // the answer began well and ends in an error
	Part      bool   `json:"part,omitempty"`       // its usage is that of a part of it
	Free      bool   `json:"free,omitempty"`       // of a kind that uses no tokens
	In        int64  `json:"in"`                   // bytes of the body, or up a tunnel
	Out       int64  `json:"out"`                  // bytes of the answer, or down a tunnel
	Finish    string `json:"finish,omitempty"`     // how the answer ended, in the provider's word
	MaxTokens int64  `json:"max_tokens,omitempty"` // that the request allows for its answer
	Trouble   string `json:"trouble,omitempty"`    // what is wrong with the provider, a trouble.Kind; Reason has its words
	RetryMS   int64  `json:"retry_ms,omitempty"`   // how long the provider asks to wait
	HeadersMS int64  `json:"headers_ms"`           // until the upstream answered
	TotalMS   int64  `json:"total_ms"`
	Charged   int64  `json:"charged"` // tokens that the budget counts: an estimate where the provider did not tell
	Spent     int64  `json:"spent"`   // tokens charged to the call by then

	// The same in US dollars; null where the model has no price.
	ChargedUSD *prices.USD `json:"charged_usd,omitempty"`
	SpentUSD   *prices.USD `json:"spent_usd,omitempty"`
}
