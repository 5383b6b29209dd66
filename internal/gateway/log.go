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
	"abl/internal/prices"
	"abl/internal/redact"
	"abl/internal/tokens"
	"abl/internal/wording"
)

// Entry is one line on standard output. Every line has a number, one more than the
// line before, so that a reader who comes back sees what it has and what is lost.
type Entry struct {
	Seq  int64  `json:"seq"`
	Kind string `json:"kind"`
	At   string `json:"at"` // RFC 3339, UTC, milliseconds
	Call string `json:"call,omitempty"`
	// Why it was refused, cut or ended; what a command did.
	Reason string   `json:"reason,omitempty"`
	Listen string   `json:"listen,omitempty"` // of the ready line
	Req    *Request `json:"request,omitempty"`
	// Of a request that a provider answered; null for what it did not tell.
	Usage *tokens.Count `json:"usage,omitempty"`
	// Of that usage; left out where it or the price is unknown.
	Cost *prices.USD `json:"cost_usd,omitempty"`

	Sum *Sum `json:"sum,omitempty"` // by then

	// Unlogged counts the requests and notes since the last line that have no line.
	Unlogged int64 `json:"unlogged,omitempty"`
}

// The kinds of lines.
const (
	Ready     = "ready"   // it listens
	Began     = "begin"   // a request is about to be sent to its provider
	Requested = "request" // a request ended
	Tunneled  = "connect" // a tunnel ended
	Obeyed    = "command" // a command was carried out
	Noted     = "note"    // something is wrong
	Ended     = "end"     // the last line
)

// Request is what is told of a request or a tunnel.
type Request struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Method   string `json:"method"`
	Class    string `json:"class,omitempty"` // of path
	Host     string `json:"host,omitempty"`  // of a tunnel
	Status   int    `json:"status"`          // 0: nobody was there any more to be answered
	Refused  bool   `json:"refused,omitempty"`
	Over     bool   `json:"over,omitempty"` // refused since the call's budget is reached
	// Refused since the provider has said that asking again is of no use.
	Held      bool   `json:"held,omitempty"`
	Aborted   bool   `json:"aborted,omitempty"`    // the client did not wait for the end
	Cut       bool   `json:"cut,omitempty"`        // the answer has no end
	Part      bool   `json:"part,omitempty"`       // its usage is that of a part of it
	Free      bool   `json:"free,omitempty"`       // of a kind that uses no tokens
	Aside     bool   `json:"aside,omitempty"`      // it offers the model no tools
	In        int64  `json:"in"`                   // bytes of the body, or up a tunnel
	Out       int64  `json:"out"`                  // bytes of the answer, or down a tunnel
	Finish    string `json:"finish,omitempty"`     // how the answer ended, in the provider's word
	Calls     bool   `json:"calls,omitempty"`      // the answer calls a tool
	MaxTokens int64  `json:"max_tokens,omitempty"` // that the request allows for its answer
	RetryMS   int64  `json:"retry_ms,omitempty"`   // how long the provider asks to wait
	Paid      bool   `json:"paid,omitempty"`       // no waiting helps before somebody pays
	HeadersMS int64  `json:"headers_ms"`           // until the upstream answered
	TotalMS   int64  `json:"total_ms"`
	// Tokens that the budget counts: an estimate where the provider did not tell.
	Charged int64 `json:"charged"`
	Spent   int64 `json:"spent"` // tokens charged to the call by then

	// Trouble is what is wrong with the provider, in Reason's words; Failed is a request at fault.
	Trouble outcome.Outcome `json:"trouble,omitempty"`

	// The same as Charged and Spent in US dollars; null where the model has no price.
	ChargedUSD *prices.USD `json:"charged_usd,omitempty"`
	SpentUSD   *prices.USD `json:"spent_usd,omitempty"`
}

// freeLines is how many lines of each kind a call has without asking its provider. After
// that, only each request or note that doubles their number has a line: so a role cannot fill
// the log, of which the engine keeps 20 MB.
const freeLines = 500

// journal writes the lines.
type journal struct {
	out     io.Writer
	secrets *redact.Redactor
	sum     func() Sum
	fatal   context.CancelCauseFunc // called if a line cannot be written

	mu       sync.Mutex
	seq      int64
	idle     map[string]int // by kind: what could have had a line without asking the provider
	unlogged int64
}

// isIdle reports whether a role can provoke the line without asking its provider, or for
// nothing.
func (e Entry) isIdle() bool {
	return e.Kind == Noted || e.Kind == Tunneled || e.Kind == Requested && (e.Req.Refused || e.Req.Free)
}

// write numbers a line and writes it in one piece.
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
	sum := j.sum() // while no other line can be written: a later line never has an earlier sum
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

// hide keeps these texts out of the lines to come.
func (j *journal) hide(secrets []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.secrets, _ = redact.New(secrets...)
}

// clean takes secrets, and what cannot be seen, out of text from outside and
// keeps it short. It is done before the text is encoded, so that a line stays JSON.
func (j *journal) clean(s string) string { return wording.Cut(redact.Line(j.secrets.String(s)), 300) }

// note writes that something is wrong; it is where net/http complains, too.
func (j *journal) note(text string) { j.write(Entry{Kind: Noted, Reason: text}) }

// Write makes the journal the output of a log.Logger, the first line of whatever it
// says: the rest would be a stack.
func (j *journal) Write(p []byte) (int, error) {
	first, _, _ := strings.Cut(string(p), "\n")
	j.note(first)
	return len(p), nil
}
