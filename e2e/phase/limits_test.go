package phase

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// A call that fills its workspace, or is silent for too long, is stopped, and the reason names
// the cause. abl repeats it once, and then the agent has failed.
func TestLimitsEndACall(t *testing.T) {
	lab.Long(t)
	const idle = "it printed nothing and was almost idle for 2s (loop.idle_timeout)"
	rounds := []struct {
		name, settings string
		class          string
		reasons        [2]string // of the two calls
	}{
		{"workspace", "limits: {memory: 1g, disk: 20m, output: 20m, inodes: 300}\n", "disk",
			[2]string{`the largest new file is "out.`, `limits.inodes is 300): the most new ones are in "./many.`}},
		{"idle", "loop: {call_timeout: 60s, idle_timeout: 2s}\n", "idle", [2]string{idle, idle}},
	}
	attempt := func(n int, steps ...agent.Step) agent.ScriptCall {
		c := call("builder", 1, append(steps, report())...)
		c.Attempt = n
		return c
	}
	p := newProject(t, nodeApp,
		attempt(1, write("server.mjs", server), run(lab.File(t, "scripts/fill-bytes.sh"))),
		attempt(2, run(lab.File(t, "scripts/fill-inodes.sh"))),
		builds(run("sleep 60")))
	for _, c := range rounds {
		t.Run(c.name, func(t *testing.T) {
			p.Write(".abl/config.yaml", replacing(scripted, c.settings)+nodeApp)
			r := p.Must(5, "phase", "1", "--json")
			ends := of(events(t, r), state.CallEnd)
			if len(ends) != 2 {
				t.Fatalf("got %d ended calls, want 2:\n%s", len(ends), r.Stdout)
			}
			for i, e := range ends {
				if e.Class != c.class || !strings.Contains(e.Text, c.reasons[i]) {
					t.Errorf("call %d: got %s: %q, want %s: %q", i+1, e.Class, e.Text, c.class, c.reasons[i])
				}
			}
		})
	}
	var got []string
	for _, row := range ledgerRows(p) {
		got = append(got, row["outcome"])
	}
	if want := "disk disk idle idle"; strings.Join(got, " ") != want {
		t.Errorf("outcomes in the ledger: got %q, want %q", got, want)
	}
	checkNothingLeft(p)
}

// An app that fills its copy of the source is stopped, and a contract fails.
func TestLimitsEndAnApp(t *testing.T) {
	settings := "limits: {memory: 1g, disk: 60m, output: 16m}\n"
	p := newProject(t, nodeApp, builds(hasApp(t, "fills-its-disk.mjs")), verifies())
	p.Write(".abl/config.yaml", replacing(replacing(scripted, settings), "loop: {max_verifier_iterations: 1}\n")+nodeApp)
	r := p.Run("phase", "1", "--json")
	var failed []string
	for _, e := range of(events(t, r), state.AppFailed) {
		failed = append(failed, e.Text)
	}
	wants(t, "the app's end", strings.Join(failed, "\n"), "abl ended its container: it wrote", "limits.disk is 60 MiB")
	checkNothingLeft(p)
}

// A deleted file that is still open takes space, but is in no folder, so the call's own limit
// does not count it. The minimum of free disk space ends the call.
func TestReserveEndsACall(t *testing.T) {
	p := newProject(t, nodeApp, builds(write("server.mjs", server),
		run(lab.File(t, "scripts/fill-without-a-name.sh"))), verifies())
	smallDisk(t, filepath.Join(p.Dir, "src"))
	r := p.Must(5, "phase", "1", "--json")
	ends := of(events(t, r), state.CallEnd)
	if len(ends) != 2 {
		t.Fatalf("ends of calls: got %d, want 2:\n%s", len(ends), r.Stdout)
	}
	for _, e := range ends {
		if e.Class != "disk" || !strings.Contains(e.Text, "need at least") {
			t.Errorf("the end of a call: got %s: %s, want disk: … need at least", e.Class, e.Text)
		}
	}
	checkNothingLeft(p)
}

// smallDisk mounts a disk of 64 MiB at dir. A tmpfs does not work: abl refuses a workspace that
// is not on one of the machine's disks.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	lab.Local(t) // another machine does not see this mount
	image := filepath.Join(t.TempDir(), "disk")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(image, nil, 0o600)
	}
	if err == nil {
		err = os.Truncate(image, 64<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop,nosuid,nodev", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Skipf("cannot mount a small disk here: %v: %s", err, out)
		}
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", "-l", dir).Run(); err != nil {
			t.Error(err)
		}
	})
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil {
		t.Error(err)
	}
}

// A call that prints nothing but works is not idle.
func TestSilentBuildIsNotIdle(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(run(lab.File(t, "scripts/work-silently.sh")), write("server.mjs", server)),
		verifies())
	p.Write(".abl/config.yaml", replacing(replacing(scripted, "loop: {call_timeout: 60s, idle_timeout: 4s}\n"),
		"verify: {evidence: off}\n")+nodeApp)
	p.Must(0, "phase", "1")
	checkNothingLeft(p)
}

// replacing returns settings with this section instead of the existing one.
func replacing(settings, section string) string {
	name, _, _ := strings.Cut(section, ":")
	var kept strings.Builder
	for line := range strings.Lines(settings) {
		if !strings.HasPrefix(line, name+":") {
			kept.WriteString(line)
		}
	}
	return kept.String() + section
}

// deadline is a container with its expected exit code.
type deadline struct{ name, id, want string }

// Whatever an agent does to the processes around it, its container ends after its deadline even
// without abl. So does the container that holds its network.
func TestContainersEndAfterTheirDeadline(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	image := toolsImage(p)
	soon := func() int64 { return time.Now().Add(12 * time.Second).Unix() } // enough time for each to start
	agent := func(name string) (id string) {
		spec := helper.RunSpec{
			Argv:     []string{"sh", "-c", lab.File(t, "deadman/"+name+".sh")},
			Dir:      "/tmp",
			Stdout:   "/dev/null",
			Stderr:   "/dev/null",
			Deadline: soon(),
		}
		return startAlone(t, image, spec, "/"+helper.HelperRun)
	}
	holder := []string{"--listen", "127.0.0.1:5300", "--deadline", fmt.Sprint(soon())}
	all := []deadline{
		{"holder", startAlone(t, image, nil, "/"+helper.HelperHolder, holder...), "0"},
		{"stops-abl-run", agent("stops-abl-run"), "137"},
		{"stops-all-and-ignores-signals", agent("stops-all-and-ignores-signals"), "137"},
		{"kills-abl-run", agent("kills-abl-run"), "137"},
		{"sleeps", agent("sleeps"), "124"},
	}
	if !testing.Short() { // uses a whole processor until its deadline
		all = append(all, deadline{"starves-process-1", agent("starves-process-1"), "124"})
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if got := docker(t, "wait", c.id); got != c.want {
				t.Errorf("exit code: got %s, want %s", got, c.want)
			}
		})
	}
}

// startAlone starts one of abl's programs in a container like a role's, with its orders in
// helper.In and without an abl, and returns the container's id.
func startAlone(t *testing.T, image string, orders any, program string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(orders)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "run.json"), data, 0o644)
	}
	for at := dir; err == nil && at != filepath.Clean(os.TempDir()); at = filepath.Dir(at) {
		err = os.Chmod(at, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	command := append([]string{"run", "-d", "--label", "abl.project=test-files", "-u", "10001:10001",
		"--read-only", "--tmpfs", "/tmp",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges:true",
		"--security-opt", "seccomp=../../internal/sandbox/docker/seccomp.json", "--network", "none", "-v", dir + ":" +
			helper.In + ":ro",
		"--entrypoint", helper.Bin + program, image}, args...)
	id := docker(t, command...)
	t.Cleanup(func() { docker(t, "rm", "-f", id) })
	return id
}
