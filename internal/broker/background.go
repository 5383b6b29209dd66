package broker

import (
	"context"
	"fmt"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
)

// startBackground starts a command that is meant to stay, anew when it is
// running, and answers once it has lived for a while or the app's port answers.
func (s *server) startBackground(ctx context.Context, c *declared) helper.CommandReply {
	u := c.unit
	u.stop()
	r, err := u.start()
	if err != nil {
		return helper.CommandReply{Exit: 126, Error: fmt.Sprintf("cannot run %s", c.Name)}
	}
	alive := time.NewTimer(backgroundAlive)
	defer alive.Stop()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for up := false; !up; {
		select {
		case <-r.ended:
			if r.claim() {
				return helper.CommandReply{Exit: proc.Code(r.cmd)}
			}
			return helper.CommandReply{Exit: 1}
		case <-alive.C:
			up = true
		case <-ctx.Done():
			up = true
		case <-tick.C:
			up = s.portAnswers(ctx)
		}
	}
	u.watch(r)
	return helper.CommandReply{}
}

func (s *server) portAnswers(ctx context.Context) bool {
	if s.app == nil {
		return false
	}
	p := s.app.prober
	p.app.Path = ""
	return p.probe(ctx, p.host).ready
}

// stopAll ends what the broker started, however it was started.
func (s *server) stopAll() {
	if s.app != nil {
		s.app.unit.stop()
	}
	for _, c := range s.commands {
		c.unit.stop()
	}
}
