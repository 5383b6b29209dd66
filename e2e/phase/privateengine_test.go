package phase

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// A real engine of the test's own is stopped, or killed, in the middle of a call and
// comes back: abl waits for it, makes the call again where it has to, and leaves
// nothing behind. Where its images are removed meanwhile, abl ends and names one, and
// goes on when they are there again.
func TestSoakEngineInTrouble(t *testing.T) {
	if os.Getenv("ABL_SOAK") == "" || os.Geteuid() != 0 {
		t.Skip("needs ABL_SOAK, and root for an engine of its own")
	}
	// An engine that is killed leaves its containers alone until it is back: the call
	// may come to a good end while nobody looks.
	for trouble, want := range map[string]string{
		"TERM": "builder engine, builder done, verifier done", "KILL": "builder done, verifier done", "images": "builder done, verifier done",
	} {
		t.Run(trouble, func(t *testing.T) {
			p, _ := behind(t)
			p.Env = nil
			dir, err := os.MkdirTemp("", "abl-d2") // a test's own folder has too long a name for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			holders := strings.Fields(docker(t, "images", "--filter", "reference=abl/holder", "--format", "{{.Repository}}:{{.Tag}}"))
			docker(t, append([]string{"save", "-o", filepath.Join(dir, "images.tar"), toolsImage(p)}, holders...)...)
			if err := os.CopyFS(filepath.Join(dir, "p"), os.DirFS(p.Dir)); err != nil {
				t.Fatal(err)
			}
			script, err := filepath.Abs("testdata/private-engine.sh")
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			cmd := exec.Command("unshare", "-n", "-m", "--propagation", "private", "bash", script, dir, trouble, lab.Bin(p, "abl"))
			cmd.Env, cmd.Stdout, cmd.Stderr = p.Cmd().Env, &out, &errs
			err = cmd.Run()
			var ends []string
			for _, e := range of(events(t, lab.Result{Stdout: out.String()}), state.CallEnd) {
				ends = append(ends, e.Role+" "+e.Class)
			}
			if got := strings.Join(ends, ", "); err != nil || !strings.HasSuffix(got, want) {
				t.Errorf("%v; calls ended as %s\n%s", err, got, errs.String())
			}
		})
	}
}
