package rolestest

import (
	"context"
	"strings"

	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

// Changed is an engine that creates other containers than it is asked for.
type Changed struct {
	*sandboxtest.Engine
	Change func(*sandbox.ContainerConfig)
}

// Create creates the container that b describes after the change.
func (c Changed) Create(ctx context.Context, b sandbox.ContainerConfig) (string, error) {
	c.Change(&b)
	return c.Engine.Create(ctx, b)
}

// ShowReach lists the networks of a reach, and the names of a container there.
func ShowReach(r sandbox.Reach) string {
	var all []string
	for _, e := range r.Endpoints {
		word := e.Network
		if len(e.Aliases) > 0 {
			word += " as " + strings.Join(e.Aliases, " ")
		}
		if e.Foreign {
			word += " foreign"
		}
		all = append(all, word)
	}
	for _, name := range r.Self {
		all = append(all, name+" is here")
	}
	if r.Resolve {
		all = append(all, "resolves")
	}
	return strings.Join(all, ", ")
}
