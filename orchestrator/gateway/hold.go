package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"abl/internal/redact"
	"abl/orchestrator/gateway/trouble"
)

// held is an answer of a provider's that stands for every request until then.
type held struct {
	words string
	until time.Time // zero for the rest of the call
}

// holder is what such an answer is about.
func (x *exchange) holder() string { return x.verdict.Provider.Name + "/" + x.verdict.Model }

// useless says why a request would only be answered like one before it, "" when it
// may be answered otherwise.
func (c *call) useless(holder string) string {
	h, ok := c.held.Load(holder)
	if !ok || !h.(held).until.IsZero() && time.Now().After(h.(held).until) {
		return ""
	}
	return h.(held).words
}

// hold takes up an error answer after which no request of the call helps any more. The
// agent gets a status with which every CLI ends at once: on others they wait for
// hours, or ask again and again. False leaves the answer to be passed on.
func (x *exchange) hold(end context.CancelCauseFunc, answer *http.Response) bool {
	if x.verdict.Route.Free {
		return false // it may be of a kind that the provider does not know
	}
	late := time.AfterFunc(span(x.limits.IdleMS), func() { end(errIdle) })
	head, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords)) // what is wrong with the rest is found when it is passed on
	late.Stop()
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), answer.Body), answer.Body}
	now := time.Now()
	said := trouble.Of(answer.StatusCode, answer.Header, head, now)
	if !said.Lasting() {
		return false
	}
	secret, _ := redact.New(x.verdict.Provider.Key)
	h := held{words: fmt.Sprintf("the provider answers %d: %s", answer.StatusCode, secret.String(said.Words))}
	if said.Retry > 0 {
		h.until = now.Add(said.Retry)
		h.words += "; it wants to be asked again after " + h.until.UTC().Format(time.RFC3339)
	}
	x.call.held.Store(x.holder(), h)
	x.wrong(said)
	x.fail(http.StatusForbidden, h.words)
	x.line.Req.Status = answer.StatusCode
	return true
}
