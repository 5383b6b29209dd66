package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/redact"
)

// maxWords is how much of an error is read for what it says, in bytes.
const maxWords = 16 << 10

// lasting is an answer of a provider's that stands for every request until then.
type lasting struct {
	words string
	until time.Time // zero for the rest of the call
}

func (l lasting) holds() bool { return l.until.IsZero() || time.Now().Before(l.until) }

// model is what such an answer is about.
func (x *exchange) model() string { return string(x.api()) + "/" + x.verdict.Model }

// failed notes what an error answer says is wrong. One after which no request of the
// call helps any more ends here: the agent gets a status with which every CLI ends at
// once, since on others they wait for hours, or ask again and again. False leaves the
// answer to be passed on.
func (x *exchange) failed(end context.CancelCauseFunc, answer *http.Response) bool {
	late := time.AfterFunc(span(x.limits.IdleMS), func() { end(errIdle) })
	head, _ := io.ReadAll(io.LimitReader(answer.Body, maxWords)) // what is wrong with the rest is found when it is passed on
	late.Stop()
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), answer.Body), answer.Body}
	now := time.Now()
	said := meter.Of(answer.StatusCode, answer.Header, head, now)
	x.wrong(said)
	if !said.Lasting() || x.verdict.Route.Free { // which may be of a kind that the provider does not know
		return false
	}
	secret, _ := redact.New(x.verdict.Provider.Key)
	l := lasting{words: fmt.Sprintf("the provider answers %d: %s", answer.StatusCode, secret.String(said.Words))}
	if said.Retry > 0 {
		l.until = now.Add(said.Retry)
		l.words += "; it wants to be asked again after " + l.until.UTC().Format(time.RFC3339)
	}
	x.useless.Store(x.model(), l)
	x.fail(http.StatusForbidden, l.words)
	x.line.Req.Status = answer.StatusCode
	return true
}

func (x *exchange) wrong(said meter.Told) {
	x.troubled(said.Kind)
	x.line.Reason, x.line.Req.RetryMS = said.Words, said.Retry.Milliseconds()
}
