package phase

import (
	"os"
	"os/exec"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The app cannot reach its Verifier, and only the Verifier can reach the app. e2e/hostile has the
// other attacks of roles and apps (TestMountsHold, TestNetworksHold, TestAppHolds).
func TestBoundaryOfTheApp(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(hasApp(t, "runs-commands.mjs")),
		verifies(runsScript(t, "listen-for-the-app.sh"), runsScript(t, "wait-for-go.sh")))
	asked := false
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.Action && e.Role == "verifier" && !asked {
			asked = true
			checkNoNetwork(p)
			p.Write(".abl/tests/go", "")
		}
	}, "phase", "1")
	if r.Code != 0 || !asked {
		t.Fatalf("got exit %d, want 0: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	out := printed(p, "p1-verify-1.1")
	lacks(t, "the Verifier's call", out, "BAD")
	wants(t, "the Verifier's call", out, "listens", "looked")
	checkNothingLeft(p)
}

// checkNoNetwork checks that the app's container has no address while its Verifier runs, and that
// it cannot get one.
func checkNoNetwork(p *lab.Project) {
	p.Helper()
	holder := "abl-" + p.ID() + "-holder-app"
	const format = "{{.HostConfig.NetworkMode}}{{range .NetworkSettings.Networks}} {{.IPAddress}}{{end}}"
	if got := docker(p, "inspect", "--format", format, holder); got != "none" {
		p.Errorf("the app's network and address: got %q, want none", got)
	}
	if out, err := exec.Command("docker", "network", "connect", "bridge", holder).CombinedOutput(); err == nil {
		p.Errorf("connecting the app's holder: got no error, want one: %s", out)
	}
}
