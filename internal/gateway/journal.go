package gateway

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"abl/internal/redact"
)

const (
	freeRefusals  = 1000 // refusals of a call that get a line each
	refusalsPause = time.Second
)

// journal writes the lines. A role can provoke as many refusals as it likes, so
// after a while only one a second has a line, and the rest are counted.
type journal struct {
	out     io.Writer
	secrets *redact.Redactor
	now     func() time.Time
	failed  func(error) // a line could not be written

	mu       sync.Mutex
	seq      int64
	refusals int
	last     time.Time // of a refusal's line
	unlogged int64
}

// write numbers a line and writes it in one piece.
func (j *journal) write(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	if e.Req != nil && e.Req.Refused {
		if j.refusals++; j.refusals > freeRefusals && now.Sub(j.last) < refusalsPause {
			j.unlogged++
			return
		}
		j.last = now
	}
	j.seq++
	e.Seq, e.At, e.Unlogged = j.seq, now.UTC().Format("2006-01-02T15:04:05.000Z"), j.unlogged
	j.unlogged = 0
	e.Reason = j.clean(e.Reason)
	if e.Req != nil {
		e.Req.Model, e.Req.Host, e.Req.Finish = j.clean(e.Req.Model), j.clean(e.Req.Host), j.clean(e.Req.Finish)
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.out.Write(append(line, '\n'))
	}
	if err != nil {
		j.failed(err)
	}
}

// clean takes secrets, and what cannot be seen, out of text from outside and
// keeps it short. It is done before the text is encoded, so that a line stays JSON.
func (j *journal) clean(s string) string {
	const longest = 300
	if s == "" {
		return ""
	}
	s = redact.Line(j.secrets.String(s))
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// note writes that something is wrong; it is where net/http complains, too.
func (j *journal) note(text string) { j.write(Entry{Kind: Noted, Reason: text}) }

// Write makes the journal the output of a log.Logger, the first line of whatever it
// says: the rest would be a stack.
func (j *journal) Write(p []byte) (int, error) {
	first, _, _ := strings.Cut(string(p), "\n")
	j.note(first)
	return len(p), nil
}
