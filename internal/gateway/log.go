package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/internal/wording"
)

// Entry is one line on standard output. The lines are numbered from 1, so that a reader notices lost
// lines.
type Entry struct {
	Seq  int64  `json:"seq"`
	Kind string `json:"kind"`
	At   string `json:"at"` // RFC 3339, UTC, milliseconds
	Call string `json:"call,omitempty"`
	// Why a request was refused, cut or ended, or the effect of a command.
	Reason string   `json:"reason,omitempty"`
	Listen string   `json:"listen,omitempty"` // of the ready line
	Req    *Request `json:"request,omitempty"`
	// The usage of a request with a response; null for counts that the provider did not report.
	Usage *usage.Count `json:"usage,omitempty"`
	// The cost of that usage; missing if the usage or the price is unknown.
	Cost *usage.USD `json:"cost_usd,omitempty"`

	Sum *Sum `json:"sum,omitempty"` // so far

	// Unlogged counts the requests and notes since the last line that have no line.
	Unlogged int64 `json:"unlogged,omitempty"`
}

// The kinds of lines.
const (
	Ready     = "ready"   // the gateway listens
	Began     = "begin"   // a request is about to be sent to its provider
	Alive     = "alive"   // a response is still arriving, possibly as pings only
	Requested = "request" // a request ended
	Tunneled  = "connect" // a tunnel ended
	Obeyed    = "command" // a command was executed
	Noted     = "note"    // a problem
	Ended     = "end"     // the last line
)

// Request describes a request or a tunnel.
type Request struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Method   string `json:"method"`
	Class    string `json:"class,omitempty"` // of path
	Host     string `json:"host,omitempty"`  // of a tunnel
	Status   int    `json:"status"`          // 0: the client was gone
	Refused  bool   `json:"refused,omitempty"`
	Over     bool   `json:"over,omitempty"` // refused because the budget is reached
	// Refused because the provider reported that no request can succeed.
	Held      bool   `json:"held,omitempty"`
	Aborted   bool   `json:"aborted,omitempty"`    // the client left before the end
	Cut       bool   `json:"cut,omitempty"`        // the response is incomplete
	Part      bool   `json:"part,omitempty"`       // the usage is incomplete
	Free      bool   `json:"free,omitempty"`       // the request uses no tokens
	Aside     bool   `json:"aside,omitempty"`      // the request has no tools
	In        int64  `json:"in"`                   // bytes of the body, or up a tunnel
	Out       int64  `json:"out"`                  // bytes of the response, or down a tunnel
	Finish    string `json:"finish,omitempty"`     // the finish reason, in the provider's term
	Calls     bool   `json:"calls,omitempty"`      // the response calls a tool
	MaxTokens int64  `json:"max_tokens,omitempty"` // the limit for the response
	RetryMS   int64  `json:"retry_ms,omitempty"`   // how long the provider asks to wait
	Paid      bool   `json:"paid,omitempty"`       // waiting does not help: the account needs money
	HeadersMS int64  `json:"headers_ms"`           // until the provider responded
	TotalMS   int64  `json:"total_ms"`
	Charge

	// Trouble is the class of the fault that Reason describes. Failed means that the request is wrong.
	Trouble outcome.Outcome `json:"trouble,omitempty"`
}

// Charge is what the budget counts of a request, and of the call so far.
type Charge struct {
	Charged int64 `json:"charged"` // tokens: an estimate if the provider did not report them
	Spent   int64 `json:"spent"`

	// In US dollars; missing if the model has no price.
	ChargedUSD *usage.USD `json:"charged_usd,omitempty"`
	SpentUSD   *usage.USD `json:"spent_usd,omitempty"`
}

// freeLines is the number of lines of each kind that a call can cause without a request to its
// provider. After that, only each request or note that doubles the number has a line, so that a role
// cannot fill the log, of which the engine keeps 20 MB.
const freeLines = 500

// journal writes the lines.
type journal struct {
	out     io.Writer
	secrets *redact.Redactor
	sum     func() Sum
	fatal   context.CancelCauseFunc // called if a line cannot be written

	mu       sync.Mutex
	seq      int64
	idle     map[string]int // by kind: the requests and notes that did not reach the provider
	unlogged int64
}

// isIdle reports whether a role can cause the line without a request to its provider, or without
// cost.
func (e Entry) isIdle() bool {
	return e.Kind == Noted || e.Kind == Tunneled || e.Kind == Requested && (e.Req.Refused || e.Req.Free)
}

// write numbers a line and writes it at once.
func (j *journal) write(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.isIdle() {
		j.idle[e.Kind]++
		if n := j.idle[e.Kind]; n > freeLines && n&(n-1) != 0 {
			j.unlogged++
			return
		}
	}
	j.seq++
	sum := j.sum() // under the lock, so that a later line never has an earlier sum
	e.Seq, e.At, e.Sum, e.Unlogged = j.seq, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), &sum, j.unlogged
	j.unlogged = 0
	e.Reason = j.clean(e.Reason)
	if e.Req != nil {
		for _, outside := range []*string{&e.Req.Method, &e.Req.Model, &e.Req.Host, &e.Req.Finish} {
			*outside = j.clean(*outside)
		}
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.out.Write(append(line, '\n'))
	}
	if err != nil {
		j.fatal(fmt.Errorf("cannot write the log: %v", err))
	}
}

// hide removes these texts from all later lines.
func (j *journal) hide(secrets []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.secrets = redact.New(secrets...)
}

// clean removes secrets and invisible characters from a text from outside, and shortens it. This
// happens before the encoding, so that the line stays valid JSON.
func (j *journal) clean(s string) string { return wording.Cut(redact.Line(j.secrets.String(s)), 300) }

// note writes a problem. Errors of net/http also arrive here.
func (j *journal) note(text string) { j.write(Entry{Kind: Noted, Reason: text}) }

// Write implements io.Writer for a log.Logger. It writes the first line of a message; the rest would
// be a stack.
func (j *journal) Write(p []byte) (int, error) {
	first, _, _ := strings.Cut(string(p), "\n")
	j.note(first)
	return len(p), nil
}
