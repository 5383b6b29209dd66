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
			if got := besidePrivateEngine(p, trouble); !strings.HasSuffix(got, want) {
				t.Errorf("calls ended as %s, want %s", got, want)
			}
		})
	}
}

// An engine that is stopped as by systemctl restart is waited out at whatever moment: no
// verdict comes of it, and nothing is called again but what it ended.
func TestSoakEngineRestarts(t *testing.T) {
	if os.Getenv("ABL_SOAK") == "" || os.Geteuid() != 0 {
		t.Skip("needs ABL_SOAK, and root for an engine of its own")
	}
	for moment, again := range map[string]string{
		`"event":"call_start".*"role":"builder"`:  "builder",
		`"event":"call_end".*"role":"builder"`:    "",
		`"event":"app_start"`:                     "",
		`"event":"call_start".*"role":"verifier"`: "verifier",
		`"event":"call_end".*"role":"verifier"`:   "",
		`"text":"replay: `:                        "",
	} {
		t.Run(moment, func(t *testing.T) {
			p := newProject(t, evidence, builds(write("server.mjs", server), run("sleep 2")),
				verifies(hasSuite(t, "honest-and-slow.sh"), run("sleep 2")))
			got := besidePrivateEngine(p, "TERM", moment)
			var want []string
			for _, role := range []string{"builder", "verifier"} {
				if role == again {
					want = append(want, role+" engine")
				}
				want = append(want, role+" done")
			}
			got = strings.ReplaceAll(got, "builder failed", "builder engine") // a call that was stopped before it could notice
			if want := strings.Join(want, ", "); got != want {
				t.Errorf("calls ended as %s, want %s", got, want)
			}
		})
	}
}

// besidePrivateEngine plays a phase on an engine of its own that has trouble, wants it to end
// well, and returns how its calls ended. What else the script takes follows the trouble.
func besidePrivateEngine(p *lab.Project, trouble string, event ...string) string {
	p.Helper()
	dir, err := os.MkdirTemp("", "abl-d2") // a test's own folder has too long a name for a socket
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { os.RemoveAll(dir) })
	holders := strings.Fields(docker(p, "images", "--filter", "reference=abl/holder", "--format", "{{.Repository}}:{{.Tag}}"))
	docker(p, append([]string{"save", "-o", filepath.Join(dir, "images.tar"), toolsImage(p)}, holders...)...)
	if err := os.CopyFS(filepath.Join(dir, "p"), os.DirFS(p.Dir)); err != nil {
		p.Fatal(err)
	}
	script, err := filepath.Abs("testdata/private-engine.sh")
	if err != nil {
		p.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := append([]string{"-n", "-m", "--propagation", "private", "bash", script, dir, trouble, lab.Bin(p, "abl")}, event...)
	cmd := exec.Command("unshare", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Cmd().Env, &out, &errs
	if err := cmd.Run(); err != nil {
		p.Errorf("%v\n%s", err, errs.String())
	}
	var ends []string
	for _, e := range of(events(p, lab.Result{Stdout: out.String()}), state.CallEnd) {
		ends = append(ends, e.Role+" "+e.Class)
	}
	return strings.Join(ends, ", ")
}
