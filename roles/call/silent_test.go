package call

import (
	"strings"
	"testing"

	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/roles"
)

// asking is a gate whose agent has sent two requests to its model.
type asking struct {
	pinging
	printed, enough chan struct{}
	looks           int
}

func (g *asking) Used() *roles.Used {
	select {
	case <-g.printed:
	default:
		return nil
	}
	if g.looks++; g.looks == 6 {
		close(g.enough)
	}
	return &roles.Used{Requests: []string{"first", "second"}[:min(g.looks, 2)]}
}

// If the user's own agent prints nothing, abl shows each of its requests to the model once.
func TestRequestsOfASilentAgent(t *testing.T) {
	for _, c := range []struct {
		name, output, want string
		own                bool
	}{
		{"silent", "", "call_start action:first running action:second call_end", true},
		{"printing", "do it\n", "call_start action:it running call_end", true},
		{"one of abl's agents", "", "call_start running call_end", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &asking{printed: make(chan struct{}), enough: make(chan struct{})}
			r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
				rolestest.Prints(b, c.output)
				close(g.printed)
				<-g.enough
				return sandbox.Exit{}
			})
			r.job.Gate, r.job.Agent.Own = g, c.own
			r.run()
			if got := r.Kinds(); !strings.HasPrefix(got, c.want) {
				t.Errorf("got the events %q, want %q first", got, c.want)
			}
		})
	}
}
