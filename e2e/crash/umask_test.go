package crash

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"abl/internal/testing/lab"
)

// abl runs as root with a strict umask in a separate project. The files for the containers are
// readable there.
func TestStrictUmask(t *testing.T) {
	lab.Long(t)
	wantEngine(t)
	if os.Geteuid() != 0 {
		t.Skip("containers run as another user only if abl runs as root")
	}
	t.Parallel()
	reads := `run: cat /workspace/specs/phase1.md || kill $PPID`
	s := newScene(t, map[string]string{"builder": reads, "verifier": reads})
	specs := filepath.Join(s.Dir, ".abl/specs")
	if err := errors.Join(os.Chmod(filepath.Join(specs, "phase1.md"), 0o600), os.Chmod(specs, 0o700)); err != nil {
		t.Fatal(err)
	}
	abl := s.Cmd("phase", "1")
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `umask 077; exec "$0" "$@"`}, abl.Args...)...)
	cmd.Env, cmd.Dir = abl.Env, abl.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("abl with umask 077: got error %v, want none: %s", err, out)
	}
	s.checkNothingLeft()
	s.checkPassed()
}
