package phase

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"abl/internal/testing/lab"
)

// abl runs in a container that has the engine's socket. A phase passes if the project is mounted
// at the same path as on the engine's machine. Otherwise abl reports the mistake.
func TestAblInAContainer(t *testing.T) {
	lab.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("the project would belong to root afterwards")
	}
	p := newProject(t, nodeApp+"verify: {evidence: off}\n", builds(write("server.mjs", server)), verifies())
	bin := filepath.Dir(lab.Bin(p, "abl"))
	image := toolsImage(p)
	inside := func(at string) (code int, said string) {
		cmd := exec.Command("docker", "run", "--rm", "--label", "abl.project=test-phase", "-u", "0:0", "--network",
			"host", "--uts", "host",
			"-v", "/var/run/docker.sock:/var/run/docker.sock", "-v", bin+":/abl-bin:ro", "-e", "ABL_HELPER=/abl-bin/abl-cmd", "-e", "ABL_GATEWAY=/abl-bin/abl-gateway",
			"-v", p.Dir+":"+at, "-w", at, "--entrypoint", "/abl-bin/abl", image, "phase", "1")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, said := inside("/elsewhere")
	if code != 7 {
		t.Errorf("at another path: got exit %d, want 7", code)
	}
	wants(t, "the error", said, "the engine does not see the project's files", "under the same path")
	if code, said := inside(p.Dir); code != 0 {
		t.Errorf("at the same path: got exit %d, want 0: %s", code, said)
	}
	if left, err := filepath.Glob(filepath.Join(p.Dir, ".abl", "nonce*")); err != nil || len(left) > 0 {
		t.Errorf("files of the check: got %v, error %v, want none", left, err)
	}
	checkNothingLeft(p)
}
