package model

import (
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

// tape forwards the request of one try and records the response while the SDK reads it.
type tape struct {
	next   http.RoundTripper
	sent   func([]byte) error
	asked  bool // the provider may have read the request
	status int
	header http.Header
	from   io.ReadCloser
	body   []byte // so far
	meter  *meter.Meter
	broken error // why the body is incomplete
	stop   error // for which another try does not help
}

// RoundTrip makes one exchange. The caller reads the body from the tape.
func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody() // the SDKs keep the body in memory
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		t.stop = err
		return nil, err
	}
	if err := t.sent(data); err != nil {
		t.stop = err
		return nil, err
	}
	resp, err := t.next.RoundTrip(r)
	op, ok := errors.AsType[*net.OpError](err)
	t.asked = !ok || op.Op != "dial"
	if err != nil {
		return nil, err
	}
	t.status, t.header, t.from = resp.StatusCode, resp.Header, resp.Body
	resp.Body = io.NopCloser(t)
	return resp, nil
}

// Read reads from the response. An incomplete response ends like a complete one, because an SDK prints
// other errors.
func (t *tape) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if len(t.body)+n > maxBody {
		t.body = nil
		t.stop = &Error{
			Kind: outcome.Failed,
			What: fmt.Sprintf("the response is larger than %d MiB, and was not read further", maxBody>>20),
		}
		return 0, io.EOF
	}
	t.body = append(t.body, p[:n]...)
	_, _ = t.meter.Write(p[:n]) // never fails
	if err != nil && err != io.EOF {
		t.broken, err = err, io.EOF
	}
	return n, err
}

// problem returns the problem that an error response reports.
func (t *tape) problem() meter.Problem { return meter.Of(t.status, t.header, t.body, time.Now()) }

// end closes the response. The SDKs read it to its end, or to an event that they cannot use.
func (t *tape) end() {
	if t.from != nil {
		t.from.Close()
	}
}

// client returns an HTTP client that does not follow redirects, which would receive the key.
func (t *tape) client() *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, CheckRedirect: stay}
}
