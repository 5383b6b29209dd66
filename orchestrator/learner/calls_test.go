package learner

import (
	"fmt"
	"testing"

	"abl/internal/gateway"
	"abl/roles/environment"

	"github.com/google/go-cmp/cmp"
)

// An author reaches the model and network.allow, a reviewer only the model. Without either, no call
// has a gateway.
func TestCallNetworkAccess(t *testing.T) {
	gate := func(model string, hosts ...string) *environment.Gate {
		g := &environment.Gate{Setup: gateway.Setup{Providers: []gateway.Provider{{Name: model}}, Connect: hosts}}
		if len(hosts) > 0 {
			g.Files = map[string][]byte{"certs.pem": nil}
		}
		return g
	}
	online := Containers{Gate: gate("gemini"), AuthorGate: gate("gemini", "registry.example:443")}
	const (
		nothing = "nothing, files 0"
		model   = "gemini [], files 0"
	)
	for _, c := range []struct {
		name       string
		containers Containers
		step       Step
		want       string
	}{
		{"an-author", online, Generate, "gemini [registry.example:443], files 1"},
		{"a-reviewer", online, Review, model},
		{"who-learns", online, Learnings, model},
		{"who-looks-for-mistakes", online, Mistakes, model},
		{"who-improves-the-prompt", online, Improve, model},
		{"an-author-no-hosts", Containers{Gate: gate("gemini"), AuthorGate: gate("gemini")}, Generate, model},
		{"an-author-nothing", Containers{}, Generate, nothing},
		{"a-reviewer-hosts-alone", Containers{AuthorGate: gate("", "registry.example:443")}, Review, nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := c.containers.job(Call{State: State{Step: c.step}})
			got := "nothing"
			if g, ok := job.Gate.(*environment.Gate); ok {
				got = fmt.Sprint(g.Setup.Providers[0].Name, " ", g.Setup.Connect)
			}
			if diff := cmp.Diff(c.want, fmt.Sprintf("%s, files %d", got, len(job.Files))); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.name, diff)
			}
			if job.Role.Sealed == (c.step == Generate) {
				t.Errorf("got sealed %t, want %t", job.Role.Sealed, c.step != Generate)
			}
		})
	}
}
