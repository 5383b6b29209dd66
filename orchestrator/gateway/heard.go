package gateway

import (
	"net/http"
	"sync"
	"time"

	"abl/orchestrator/gateway/trouble"
)

// How much of an answer is read for what it says is wrong, in bytes.
const (
	maxWords = 16 << 10 // of an error, from its beginning
	maxEvent = 4 << 10  // of any other answer, at its end
)

// told notes what an error answer says is wrong.
func (x *exchange) told(answer *http.Response, body []byte) {
	x.wrong(trouble.Of(answer.StatusCode, answer.Header, body, time.Now()))
}

// ended notes what an answer that began well says is wrong at its end.
func (x *exchange) ended(answer *http.Response, tail []byte) {
	if said, failed := trouble.InStream(tail, answer.Header, time.Now()); failed {
		x.line.Req.Broken = true
		x.wrong(said)
	}
}

func (x *exchange) wrong(said trouble.Told) {
	x.troubled(said.Kind)
	x.line.Reason, x.line.Req.RetryMS = said.Words, said.Retry.Milliseconds()
}

// head keeps the first bytes of what is passed on.
type head struct {
	most int
	text []byte
}

func (h *head) note(p []byte) { h.text = append(h.text, p[:min(len(p), h.most-len(h.text))]...) }

// end keeps the last bytes of what is passed on, up to its capacity.
type end struct{ text []byte }

// ends are the buffers of many answers.
var ends = sync.Pool{New: func() any { return &end{make([]byte, 0, maxEvent)} }}

func (e *end) note(p []byte) {
	p = p[max(len(p)-cap(e.text), 0):]
	if over := len(e.text) + len(p) - cap(e.text); over > 0 {
		e.text = e.text[:copy(e.text, e.text[over:])]
	}
	e.text = append(e.text, p...)
}
