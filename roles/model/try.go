package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
)

// maxBody is the largest accepted response, in bytes.
const maxBody = 64 << 20

// try is the request of one try, and the response to it so far.
type try struct {
	asked  bool // the provider may have read the request
	status int
	header http.Header
	body   []byte
	meter  *meter.Meter
	broken error // why the body is incomplete
	stop   error // for which another try does not help
}

// question is what a try sends.
type question struct {
	key, base, model, prompt string
	once                     string // the same for each try
}

// request returns the request and its body.
func (p protocol) request(ctx context.Context, q question) (*http.Request, []byte, error) {
	var body bytes.Buffer
	as := json.NewEncoder(&body)
	as.SetEscapeHTML(false) // prompts have code
	if err := as.Encode(p.body(q.model, q.prompt)); err != nil {
		return nil, nil, err
	}
	data := bytes.TrimSpace(body.Bytes())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, q.base+p.path(q.model), bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	p.header(r.Header, q.key, q.once)
	return r, data, nil
}

// run sends a question and reads the response. It calls sent with the body of the request, and heard
// with each piece of the answer. It follows no redirect, which would receive the key.
func (t *try) run(
	ctx context.Context, over http.RoundTripper, p protocol, q question, sent func([]byte) error, heard func(model, text string),
) error {
	r, data, err := p.request(ctx, q)
	if err == nil {
		err = sent(data)
	}
	if err != nil {
		t.stop = err
		return err
	}
	resp, err := over.RoundTrip(r)
	op, ok := errors.AsType[*net.OpError](err)
	t.asked = !ok || op.Op != "dial"
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	t.status, t.header = resp.StatusCode, resp.Header
	var invalid error
	t.meter.Each = func(event []byte) {
		model, text, err := p.read(event)
		if invalid = cmp.Or(invalid, err); err == nil {
			heard(model, text)
		}
	}
	if _, err := io.Copy(t, resp.Body); err != errDone {
		t.broken = err
	}
	if t.meter.Broken(t.broken == nil) {
		invalid = cmp.Or(invalid, errors.New("an event is not JSON"))
	}
	return invalid
}

// errDone ends the copy of a response whose last event has arrived.
var errDone = errors.New("the stream is complete")

// Write reads the next piece of the response.
func (t *try) Write(p []byte) (int, error) {
	if len(t.body)+len(p) > maxBody {
		t.body = nil
		t.stop = &Error{
			Kind: outcome.Failed,
			What: fmt.Sprintf("the response is larger than %d MiB, and was not read further", maxBody>>20),
		}
		return 0, t.stop
	}
	t.body = append(t.body, p...)
	n, err := t.meter.Write(p)
	if t.meter.Done() {
		err = errDone
	}
	return n, err
}

// problem returns the problem that an error response reports.
func (t *try) problem() meter.Problem { return meter.Of(t.status, t.header, t.body, time.Now()) }
