package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/docker/docker/client"

	"abl/internal/sandbox"
)

// oldest is the first API version with every option that the profile needs;
// Debian 12 ships an engine of exactly this one.
const oldest = "1.41"

// connectTime bounds the first word with an engine.
const connectTime = 10 * time.Second

// Options say how to find an engine.
type Options struct {
	Env func(string) string // defaults to os.Getenv
}

// Connect finds the engine as Docker's own tools do (DOCKER_HOST, then
// DOCKER_CONTEXT, then the current context, then the default socket) and
// greets it. An engine that does not answer is an error that wraps
// sandbox.ErrUnreachable and says where abl looked and what to do.
func Connect(ctx context.Context, o Options) (*Engine, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	at, err := locate(o.Env)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrUnreachable, err)
	}
	opts, err := at.ClientOpts()
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", sandbox.ErrUnreachable, at.Host, err)
	}
	c, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", sandbox.ErrUnreachable, at.Host, err)
	}
	e := newEngine(&conn{api: c, host: at.Host, pause: firstPause})
	if err := e.greet(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return e, nil
}

// greet learns whether the engine answers and speaks an API that abl knows.
func (e *conn) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	pong, err := e.api.Ping(ctx)
	if err != nil {
		return unreachable(e.host, dialCause(ctx, e.host, err))
	}
	if older(pong.APIVersion, oldest) {
		return fmt.Errorf("engine at %s speaks API %q and abl needs %s: update Docker to 20.10 or later", e.host, pong.APIVersion, oldest)
	}
	return nil
}
