package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"abl/internal/outcome"
)

// maxBody is the largest response that is taken.
const maxBody = 64 << 20

// tape hands requests on and keeps what went over the wire in one try.
type tape struct {
	next   http.RoundTripper
	sent   func([]byte) error
	status int
	header http.Header
	body   []byte
}

// RoundTrip is one exchange. The response is read to its end here, so that it is
// kept even when the SDK gives up on it.
func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.sent != nil && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err == nil {
			err = t.sent(data)
		}
		if err != nil {
			return nil, stop{err}
		}
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	t.status, t.header, t.body = resp.StatusCode, resp.Header, data
	if len(data) > maxBody {
		t.body = nil
		return nil, stop{&Error{Kind: outcome.Failed, What: fmt.Sprintf("the response is larger than %d MiB, and was not read further", maxBody>>20)}}
	}
	if err != nil {
		t.status = 0 // it broke off
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// stop is an error that no further try can mend.
type stop struct{ error }

func (s stop) Unwrap() error { return s.error }

// client is an HTTP client that goes nowhere but where it was sent: at a
// redirection the key would go along.
func (t *tape) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
