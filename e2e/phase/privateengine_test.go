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

// A separate engine is stopped or killed during a call and restarts. abl waits for it, repeats
// the call if necessary, and leaves nothing behind. If its images are removed in the meantime,
// abl ends and names one, and continues when they exist again.
func TestSoakEngineInTrouble(t *testing.T) {
	if os.Getenv("ABL_SOAK") == "" || os.Geteuid() != 0 {
		t.Skip("needs ABL_SOAK, and root for a separate engine")
	}
	// The containers of a killed engine continue until it is back: the call may succeed in the
	// meantime.
	for trouble, want := range map[string]string{
		"TERM": "builder engine, builder done, verifier done", "KILL": "builder done, verifier done", "images": "builder done, verifier done",
	} {
		t.Run(trouble, func(t *testing.T) {
			p, _ := behindProxy(t)
			p.Env = nil
			if got := besidePrivateEngine(p, trouble); !strings.HasSuffix(got, want) {
				t.Errorf("got call ends %s, want %s", got, want)
			}
		})
	}
}

// abl waits for an engine that is restarted at any moment, as by systemctl restart. The restart
// causes no verdict, and only interrupted calls are repeated.
func TestSoakEngineRestarts(t *testing.T) {
	if os.Getenv("ABL_SOAK") == "" || os.Geteuid() != 0 {
		t.Skip("needs ABL_SOAK, and root for a separate engine")
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
			got = strings.ReplaceAll(got, "builder failed", "builder engine") // a call that was stopped before it could report
			if want := strings.Join(want, ", "); got != want {
				t.Errorf("got call ends %s, want %s", got, want)
			}
		})
	}
}

// besidePrivateEngine plays a phase on a separate engine that has a trouble, checks that it
// passes, and returns the ends of its calls. event holds the script's further arguments after the
// trouble.
func besidePrivateEngine(p *lab.Project, trouble string, event ...string) string {
	p.Helper()
	dir := lab.SocketDir(p)
	holders := strings.Fields(docker(p, "images", "--filter", "reference=abl/holder", "--format",
		"{{.Repository}}:{{.Tag}}"))
	docker(p, append([]string{"save", "-o", filepath.Join(dir, "images.tar"), toolsImage(p)}, holders...)...)
	if err := os.CopyFS(filepath.Join(dir, "p"), os.DirFS(p.Dir)); err != nil {
		p.Fatal(err)
	}
	script, err := filepath.Abs("testdata/private-engine.sh")
	if err != nil {
		p.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := append([]string{
		"-n", "-m", "--propagation", "private", "bash", script, dir, trouble,
		lab.Bin(p, "abl"),
	}, event...)
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
