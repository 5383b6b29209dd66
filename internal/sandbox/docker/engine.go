// Package docker turns the words of package sandbox into containers, networks
// and volumes of a Docker engine. It is the only package of abl that knows
// Docker; every box that it makes carries the hardening profile of profile.go. It
// knows no phase, and what a role may see or reach it is told.
package docker

import (
	"sync"
	"time"

	"github.com/docker/docker/client"

	"abl/internal/sandbox"
)

// Engine is a Docker engine: what it does with boxes, and by what is in it with
// images, networks and volumes. Its methods may be called from several goroutines.
type Engine struct {
	*stores
	*conn
	killer *killer  // nil: nothing is done about a container that the engine cannot stop
	forced sync.Map // by the id of each container that a killer had to end, the engine's error
}

// stores are an engine's networks, volumes and images.
type stores struct {
	*conn
	logins    logins
	measuring sync.Mutex // an engine measures for one caller at a time, and refuses others
	making    sync.Mutex // engines check a network's name and make it in two steps
}

// conn is how an engine is asked: which requests are repeated and for how long.
type conn struct {
	api   client.APIClient
	host  string        // address, for error sentences
	pause time.Duration // before the first repetition of a call; doubles

	buildKit bool // it builds with BuildKit

	patience patience
	guard    func() error // asked before every request, nil for nobody

	mu   sync.Mutex
	info *sandbox.Info // as the engine told it first
}

func newEngine(c *conn) *Engine { return &Engine{stores: &stores{conn: c}, conn: c} }

var _ sandbox.Engine = (*Engine)(nil)

// Close gives the connections back.
func (c *conn) Close() error { return c.api.Close() }
