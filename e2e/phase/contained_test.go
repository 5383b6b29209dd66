package phase

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// abl runs in a container that was handed the engine's socket: a phase passes when
// the project is mounted at the path that it has on the engine's machine, and abl
// says so when it is not.
func TestAblInAContainer(t *testing.T) {
	lab.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("the project would be root's afterwards")
	}
	p := newProject(t, nodeApp+"verify: {evidence: off}\n", builds(write("server.mjs", server)), verifies())
	bin := filepath.Dir(lab.Bin(p, "abl"))
	image := toolsImage(p)
	inside := func(at string) (code int, said string) {
		cmd := exec.Command("docker", "run", "--rm", "--label", "abl.project=test-phase", "-u", "0:0", "--network", "host", "--uts", "host",
			"-v", "/var/run/docker.sock:/var/run/docker.sock", "-v", bin+":/abl-bin:ro", "-e", "ABL_HELPER=/abl-bin/abl-cmd", "-e", "ABL_GATEWAY=/abl-bin/abl-gateway",
			"-v", p.Dir+":"+at, "-w", at, "--entrypoint", "/abl-bin/abl", image, "phase", "1")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, said := inside("/elsewhere")
	if code != 7 {
		t.Errorf("at another path: exit %d", code)
	}
	wants(t, "the error", said, "the engine does not see the project's files", "the very path")
	if code, said := inside(p.Dir); code != 0 {
		t.Errorf("at the same path: exit %d: %s", code, said)
	}
	if left, err := filepath.Glob(filepath.Join(p.Dir, ".abl", "nonce*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	noLeftovers(p)
}

// Two abl play two projects on one engine at the same time, and a second one on the
// same project is told who holds it.
func TestTwoAtOnce(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp+"verify: {evidence: off}\n", builds(write("server.mjs", server), run("touch at; until [ -e go ]; do sleep 0.05; done; rm -f at go")), verifies())
	other := lab.From(t, os.DirFS(p.Dir))
	busy := 0
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind != state.Action || busy > 0 || !strings.Contains(e.Text, "touch at") {
			return
		}
		busy++
		second := p.Run("phase", "1")
		if second.Code != 11 {
			t.Errorf("the second abl: exit %d", second.Code)
		}
		wants(t, "the second abl", second.Stderr, "it is held by process")
		script(other, builds(write("server.mjs", server)), verifies())
		other.Must(0, "phase", "1") // while the first one's call goes on
		p.Write("src/go", "")
	}, "phase", "1")
	if r.Code != 0 || busy != 1 {
		t.Errorf("exit %d, %d: %s", r.Code, busy, r.Stderr)
	}
	if p.ID() == other.ID() {
		t.Error("two projects have one id")
	}
	noLeftovers(p)
	noLeftovers(other)
}
