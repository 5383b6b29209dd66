package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"abl/internal/helper"
)

// Client asks the broker at URL, as http://app:7070, to run commands.
type Client struct {
	URL   string
	Token string
}

// maxReply bounds what a broker's reply may come to: it stands in the app's
// container, where the Builder's code runs.
const maxReply = 1 << 20

// Run runs the declared command name; what stdin holds is the command's
// standard input, read for as long as the command takes it. An error says that
// no reply came; a command that was not run has its reason in the reply.
func (c Client) Run(ctx context.Context, name string, stdin io.Reader) (helper.CommandReply, error) {
	return c.post(ctx, "/run/"+url.PathEscape(name), stdin)
}

// Restart stops the app, starts it again and waits until it is ready.
func (c Client) Restart(ctx context.Context) (helper.CommandReply, error) {
	return c.post(ctx, "/restart", nil)
}

func (c Client) post(ctx context.Context, path string, body io.Reader) (helper.CommandReply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, body)
	if err != nil {
		return helper.CommandReply{}, fmt.Errorf("cannot ask the broker: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	// No proxy: the role's environment may name one, and the broker is a neighbour.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return helper.CommandReply{}, fmt.Errorf("cannot reach the broker: %w", err)
	}
	defer resp.Body.Close()
	var reply helper.CommandReply
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&reply); err != nil {
		return helper.CommandReply{}, fmt.Errorf("cannot read the broker's reply (status %d): %w", resp.StatusCode, err)
	}
	return reply, nil
}
