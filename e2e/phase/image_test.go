package phase

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// A project's own Dockerfile extends abl's image for the Builder and the app. abl builds it only
// when its inputs change.
func TestProjectDockerfile(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp+"images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n")
	t.Cleanup(func() { dropImages(t, "own-dockerfile") })
	nonce := fmt.Sprint(time.Now().UnixNano()) // otherwise an image of an earlier run would match
	dockerfile := func(marker string) {
		p.Write(".abl/images/builder.Dockerfile",
			"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nUSER 0:0\nLABEL abl.test=own-dockerfile\nCOPY note /etc/note\nRUN echo "+marker+" "+nonce+" > /etc/marker\n")
	}
	script(p, builds(hasApp(t, "shows-its-image.mjs"), run("cat /etc/marker /etc/note")),
		verifies(run("curl -s http://app:3000/"), run("ls /etc/marker")))
	p.Write(".abl/images/note", "note one\n")
	steps := func() int {
		r := p.Must(0, "phase", "1", "--json")
		n := 0
		for _, e := range of(events(t, r), state.Note) {
			if strings.HasPrefix(e.Text, "project: built in ") {
				n++
			}
		}
		return n
	}
	reopen := func(round string) { p.Write(".abl/specs/phase1.md", oneSpec+"\nRound "+round+".\n") }

	dockerfile("first")
	if n := steps(); n != 1 {
		t.Errorf("builds of the image at first: got %d, want 1", n)
	}
	wants(t, "the Builder's container", printed(p, "p1-build-1.1"), "first "+nonce+"\nnote one")
	wants(t, "the app's container", printed(p, "p1-verify-1.1"), "app first "+nonce+"\nnote one\n",
		"cannot access '/etc/marker'")
	reopen("two")
	if n := steps(); n != 0 {
		t.Errorf("builds of the image without a change: got %d, want 0", n)
	}
	reopen("three")
	dockerfile("second")
	if n := steps(); n != 1 {
		t.Errorf("builds of the image after a change: got %d, want 1", n)
	}
	wants(t, "the Builder's container", printed(p, "p1-build-3.1"), "second "+nonce+"\nnote one\n")
	reopen("four")
	p.Write(".abl/images/note", "note two\n")
	if n := steps(); n != 1 {
		t.Errorf("builds of the image after a change of the file that it copies: got %d, want 1", n)
	}
	wants(t, "the app's container", printed(p, "p1-verify-4.1"), "app second "+nonce+"\nnote two\n")
	checkNothingLeft(p)
}

// If a Dockerfile is not based on abl's image, or does not build, the user has to fix it.
func TestInvalidProjectDockerfile(t *testing.T) {
	p := newProject(t, nodeApp+"images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n", builds(), verifies())
	p.Write(".abl/images/builder.Dockerfile", "FROM debian\n")
	wants(t, "another image", p.Must(2, "phase", "1").Stderr, "builder.Dockerfile", "ABL_IMAGE")
	p.Write(".abl/images/builder.Dockerfile",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nRUN printf '\\033[31mred\\n' && seq 1001 1300 && false\n")
	failed := p.Must(7, "phase", "1")
	wants(t, "a failing step", failed.Stderr, "builder's image", "project | 1300", ".abl/logs/build-project.log")
	lacks(t, "the output before the last lines", failed.Stderr, "project | 1001")
	wants(t, "the file", p.Read(".abl/logs/build-project.log"), "\n\\x1b[31mred\n1001\n1002\n", "\n1299\n1300\n")
	if got := p.Read(".abl/logs/tokens.csv"); strings.Count(got, "\n") > 1 {
		t.Errorf("the ledger: got %s, want no call", got)
	}
}

// A build that fails for lack of a network has the engine's default network. It gets the host's
// network only if the user permits it.
func TestProjectDockerfileWithHostNetwork(t *testing.T) {
	p := newProject(t, nodeApp+"images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n", builds(), verifies())
	p.Write(".abl/images/builder.Dockerfile",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\n"+
			"RUN echo interfaces $(ls /sys/class/net | grep -v ^br-) end; echo EAI_AGAIN Temporary failure resolving; false\n")
	r := p.Run("phase", "1")
	wants(t, "a build that asks for more by its words", r.Stderr, "interfaces eth0 lo end", "network.builds: host")
	lacks(t, "it", r.Stdout+r.Stderr, "trying the host's", "docker0")
	p.Env = append(p.Env, "ABL_NETWORK_BUILDS=host")
	wants(t, "a build with permission", p.Run("phase", "1").Stderr, "docker0")
}
