package broker

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"abl/internal/helper"
)

const (
	// maxRequests bounds the concurrent requests. More are refused.
	maxRequests = 64
	// maxReply bounds a reply, in bytes: the Builder's code runs in the same container as the
	// broker.
	maxReply = 1 << 20
	// lingers is the time for a client to read its reply.
	lingers = 10 * time.Second
)

// Client runs commands at the broker at URL, such as http://app:7070.
type Client struct {
	URL   string
	Token string
}

// Run runs the declared command name with the standard input stdin. It fails if there is no reply. If
// the broker did not run the command, the reply has the reason.
func (c Client) Run(ctx context.Context, name string, stdin io.Reader) (reply helper.CommandReply, err error) {
	err = c.post(ctx, "/run/"+url.PathEscape(name), stdin, maxReply, &reply)
	return reply, err
}

// Restart stops the app, starts it again and waits until it is ready.
func (c Client) Restart(ctx context.Context) (reply helper.CommandReply, err error) {
	err = c.post(ctx, "/restart", nil, maxReply, &reply)
	return reply, err
}

// post sends a request to the broker and decodes its reply, of at most most bytes.
func (c Client) post(ctx context.Context, path string, body io.Reader, most int64, reply any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, body)
	if err != nil {
		return fmt.Errorf("cannot send a request to the broker: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	// Without a proxy: the environment of the role may name one, and the broker is in the same network.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("cannot reach the broker: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(reply); err != nil {
		return fmt.Errorf("cannot read the broker's reply (status %d): %w", resp.StatusCode, err)
	}
	return nil
}

// routes returns the handler of the broker. It requires the token, and bounds concurrent requests.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run/{name}", s.runCommand)
	mux.HandleFunc("POST /app", s.runApp)
	mux.HandleFunc("POST /restart", s.restart)
	want := []byte("Bearer " + s.spec.Token)
	places := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		into := http.NewResponseController(w)
		// The reply may precede the end of the body. HTTP/1 always supports this.
		_ = into.EnableFullDuplex()
		// Read the rest of the body until the client has read the reply. If the connection were
		// closed earlier, the request of the client would fail before it reads the reply.
		defer func() {
			_ = errors.Join(into.Flush(), into.SetReadDeadline(time.Now().Add(lingers)))
			_, _ = io.Copy(io.Discard, r.Body)
		}()
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			refuse(w, http.StatusUnauthorized, "the token is wrong")
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			mux.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusServiceUnavailable, "too many commands are waiting")
		}
	})
}

// restart restarts the app. For a command-line program, which does not stay running, it clears the
// home directory.
func (s *server) restart(w http.ResponseWriter, _ *http.Request) {
	if s.spec.App == nil {
		refuse(w, http.StatusConflict,
			"the configuration has no app section; a background command starts the system, or restarts it")
		return
	}
	s.log.note("restart")
	restart, reply := s.clearHome, helper.CommandReply{}
	if s.app != nil {
		restart = func() error { return s.appUp(EventRestarted) }
	}
	if err := restart(); err != nil {
		reply = helper.CommandReply{Exit: 1, Output: err.Error() + "\n"}
	}
	write(w, http.StatusOK, reply)
}

// refuse replies that nothing was run, and why.
func refuse(w http.ResponseWriter, status int, why string) {
	write(w, status, helper.CommandReply{Exit: 2, Error: why})
}

func write(w http.ResponseWriter, status int, reply any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply) // the client may be gone
}
