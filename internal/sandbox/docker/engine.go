// Package docker implements package sandbox for Docker engines. It is the only package that uses
// Docker's API. Every container gets the hardening profile of profile.go.
package docker

import (
	"sync"
	"time"

	"github.com/docker/docker/client"

	"abl/internal/sandbox"
)

// Engine is a Docker engine. Its methods are safe for concurrent use.
type Engine struct {
	*stores
	*conn
	killer *killer  // kills containers that the engine cannot stop; may be nil
	forced sync.Map // container id to the engine's error, for containers that a killer ended
}

// stores manages networks, volumes and images.
type stores struct {
	*conn
	logins    logins
	measuring sync.Mutex // engines reject concurrent disk usage requests
	making    sync.Mutex // engines do not check and create a network's name atomically
}

// conn sends requests to the engine and repeats them.
type conn struct {
	api   client.APIClient
	host  string        // address, for error messages
	pause time.Duration // before the first repetition of a call; doubles

	buildKit bool // the engine builds with BuildKit

	patience patience
	guard    func() error // called before every request, may be nil

	mu   sync.Mutex
	info *sandbox.Info // result of the first Info
}

func newEngine(c *conn) *Engine { return &Engine{stores: &stores{conn: c}, conn: c} }

var _ sandbox.Engine = (*Engine)(nil)

// Close closes the connections.
func (c *conn) Close() error { return c.api.Close() }
