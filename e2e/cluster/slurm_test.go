// Package cluster runs abl submit on a real Slurm of two nodes (scripts/slurm.sh), which reach the repositories
// over the network, and on a Kubernetes control plane (scripts/kubernetes.sh). It needs root, and
// `make test-cluster` runs it.
package cluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// rig is a Slurm cluster with projects, each in a bare repository.
type rig struct {
	*lab.Project        // of the first repository
	dir          string // of all that follows
	slurm        string // of the cluster
	projects     string // file with the addresses of all repositories
	origins      []string
	address      string // of the git server with the repositories
}

// newRig starts a cluster and makes projects. Jobs run program in place of abl, "" for abl.
func newRig(t *testing.T, projects, licenses int, program string) *rig {
	t.Helper()
	if os.Getenv("ABL_TEST_CLUSTER") == "" {
		t.Skip("only in make test-cluster")
	}
	lab.Engine(t)
	r := &rig{dir: t.TempDir(), slurm: t.TempDir()}
	r.projects = filepath.Join(r.dir, "projects.txt")
	abl := lab.Bin(t, "abl")
	bin := filepath.Join(r.dir, "bin")
	must(t, os.MkdirAll(bin, 0o755))
	at := abl
	if program != "" {
		var err error
		at, err = filepath.Abs("testdata/programs/" + program)
		must(t, err)
	}
	must(t, os.Symlink(at, filepath.Join(bin, "abl")))
	env := map[string]string{
		"PATH": bin + ":" + os.Getenv("PATH"), "ABL_HELPER": lab.Bin(t, "abl-cmd"), "ABL_GATEWAY": lab.Bin(t, "abl-gateway"),
		"ABL_REAL": abl, "RIG": r.dir, "ABL_LATER": "1",
	}
	text := "ABL_WORK=" + r.dir + "/nodes/$SLURMD_NODENAME\n"
	for name, value := range env {
		text += fmt.Sprintf("%s='%s'\n", name, value)
	}
	must(t, os.WriteFile(filepath.Join(r.dir, "env"), []byte(text), 0o644))
	t.Setenv("SLURM_CONF", filepath.Join(r.slurm, "slurm.conf"))
	t.Setenv("ABL_SLURM_LICENSES", strconv.Itoa(licenses))
	t.Cleanup(func() { run(t, r.slurm, "../../scripts/slurm.sh", "down", r.slurm) })
	run(t, "", "../../scripts/slurm.sh", "up", r.slurm)
	r.serve(t)
	for i := range projects {
		r.addProject(t, i)
	}
	return r
}

// serve starts a git server for the repositories. The nodes reach it at the address of the controller.
func (r *rig) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", controller+":0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	r.address = "git://" + l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f, err := c.(*net.TCPConn).File()
			if err == nil {
				cmd := exec.Command("git", "daemon", "--inetd", "--export-all", "--enable=receive-pack", "--base-path="+r.dir)
				cmd.Stdin, cmd.Stdout = f, f
				if err = cmd.Start(); err == nil {
					go cmd.Wait()
				}
				f.Close()
			}
			c.Close()
			if err != nil {
				t.Error(err)
			}
		}
	}()
}

// controller is the address of the controller (scripts/slurm.sh).
const controller = "198.51.100.1"

// addProject makes a project, pushes it to a bare repository, and adds it to the list.
func (r *rig) addProject(t *testing.T, i int) {
	t.Helper()
	origin := filepath.Join(r.dir, fmt.Sprintf("project%d.git", i))
	p := &lab.Project{TB: t, Dir: filepath.Join(r.dir, fmt.Sprintf("project%d", i)),
		Env: []string{"ABL_ENV_FILE=" + r.dir + "/env"}}
	must(t, os.CopyFS(p.Dir, os.DirFS("testdata/project")))
	must(t, os.Rename(filepath.Join(p.Dir, "gitignore"), filepath.Join(p.Dir, ".gitignore")))
	run(t, "", "git", "init", "-q", "--bare", "-b", "main", origin)
	run(t, "", "git", "--git-dir", origin, "config", "core.logAllRefUpdates", "always")
	p.Git("", "init", "-q", "-b", "main")
	p.Git("", "config", "user.name", "P")
	p.Git("", "config", "user.email", "p@example.com")
	address := r.address + "/" + filepath.Base(origin)
	p.Git("", "remote", "add", "origin", address)
	p.Git("", "add", "-A")
	p.Git("", "commit", "-qm", "specs")
	p.Git("", "push", "-q", "origin", "main")
	r.origins = append(r.origins, origin)
	if r.Project == nil {
		r.Project = p
		p.Must(0, "init", "--submit", "slurm")
	}
	f, err := os.OpenFile(r.projects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(t, err)
	_, err = fmt.Fprintln(f, address)
	must(t, err)
	must(t, f.Close())
}

// submit submits phases and returns the job's id.
func (r *rig) submit(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(r.Must(0, append([]string{"submit", "--on", "slurm"}, args...)...).Stdout)
}

// await waits until a job has ended for good.
func await(t *testing.T, job string) {
	t.Helper()
	run(t, "", "srun", "--quiet", "--dependency=afterany:"+job, "-n1", "true")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if strings.HasPrefix(name, "..") {
		dir = ""
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// row is a line of abl submit status.
type row struct {
	Project, Status, State, Node string
	Phase                        int
	Exit                         *int
}

// passed fails the test unless two phases of all projects have passed, and no lease is left.
func (r *rig) passed(t *testing.T) {
	t.Helper()
	var rows []row
	r.JSON(&rows, "submit", "status", "--on", "slurm", "--projects", r.projects, "--json")
	if len(rows) != 2*len(r.origins) {
		t.Errorf("phases: got %d, want %d", len(rows), 2*len(r.origins))
	}
	for _, row := range rows {
		if row.Status != "passed" || row.Exit == nil || *row.Exit != 0 {
			t.Errorf("phase %d of %s: got %+v, want passed with exit code 0", row.Phase, row.Project, row)
		}
	}
	for _, origin := range r.origins {
		files := r.Git("", "--git-dir", origin, "ls-tree", "--name-only", "refs/abl/state")
		if strings.Contains(files, "lease.json") {
			t.Errorf("%s: got a lease at the end, want none", origin)
		}
		run(t, "", "git", "--git-dir", origin, "fsck", "--strict")
		r.history(t, origin)
		r.refs(t, origin)
	}
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(r.Dir, "abl-*.log"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			t.Logf("%s:\n%s", path, text)
		}
	}
}

// TestPhases: an array job runs two phases of many projects on two nodes.
func TestPhases(t *testing.T) {
	n := 20
	if text := os.Getenv("ABL_TEST_CLUSTER_PROJECTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(t, err)
	}
	r := newRig(t, n, 20, "")
	await(t, r.submit(t, "1", "2", "--projects", r.projects))
	r.passed(t)
	r.empty(t)
}

// TestNodeIsLost: Slurm starts the job on the other node, which waits for the lease and does not repeat the
// Builder's call.
func TestNodeIsLost(t *testing.T) {
	r := newRig(t, 1, 20, "lost")
	t.Cleanup(func() { r.clean(t) })
	pipe := filepath.Join(r.dir, "pipe")
	run(t, "", "mkfifo", pipe)
	job := r.submit(t, "1", "2", "--projects", r.projects)
	node, err := os.ReadFile(pipe) // waits until abl was killed
	must(t, err)
	run(t, "", "../../scripts/slurm.sh", "lose", r.slurm, strings.TrimSpace(string(node)))
	await(t, job)
	r.passed(t)
	calls := r.calls(r.origins[0], 1)
	if got, want := strings.Join(calls, ", "), "p1-build-1.1 done, p1-verify-1.1 lost, p1-verify-1.2 done"; got != want {
		t.Errorf("calls of phase 1: got %q, want %q", got, want)
	}
}

// TestRequeue: the job starts again after exit code 75 and before its time limit ends, and not after scancel.
func TestRequeue(t *testing.T) {
	for _, c := range []struct {
		name, program string
		cancel        bool
		edit          [2]string // of the template
		runs, state   string
	}{
		{name: "exit code 75", program: "later", runs: "run run", state: "COMPLETED"},
		{name: "time limit", program: "stops", edit: [2]string{"USR1@300", "USR1@100"}, runs: "run stopped run",
			state: "COMPLETED"},
		{name: "scancel", program: "stops", cancel: true, runs: "run stopped", state: "CANCELLED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1, 20, c.program)
			if c.edit[0] != "" {
				text := strings.Replace(r.Read(".abl/submit/slurm.sh"), c.edit[0], c.edit[1], 1)
				r.Write(".abl/submit/slurm.sh", strings.Replace(text, "--time=12:00:00", "--time=00:02:00", 1))
			}
			pipe := filepath.Join(r.dir, "pipe")
			run(t, "", "mkfifo", pipe)
			job := r.submit(t, "1")
			if c.program == "stops" {
				_, err := os.ReadFile(pipe)
				must(t, err)
			}
			if c.cancel {
				run(t, "", "scancel", job)
			}
			await(t, job)
			if got := strings.Join(r.runs(t), " "); got != c.runs {
				t.Errorf("runs: got %q, want %q", got, c.runs)
			}
			if got := run(t, "", "scontrol", "show", "job", job); !strings.Contains(got, "JobState="+c.state) {
				t.Errorf("the job: got %s, want JobState=%s", got, c.state)
			}
		})
	}
}

// runs are the first words of the lines that a program of the test wrote.
func (r *rig) runs(t *testing.T) (all []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, "runs"))
	must(t, err)
	for line := range strings.Lines(string(data)) {
		all = append(all, strings.Fields(line)[0])
	}
	return all
}

// TestLicence: with one licence no two jobs run at once.
func TestLicence(t *testing.T) {
	r := newRig(t, 4, 1, "alone")
	const template = ".abl/submit/slurm.sh"
	r.Write(template, strings.Replace(r.Read(template), "##SBATCH --licenses", "#SBATCH --licenses", 1))
	await(t, r.submit(t, "1", "--projects", r.projects))
	if got := r.runs(t); len(got) != 4 || slices.Contains(got, "overlap") {
		t.Errorf("runs: got %q, want 4 without overlap", got)
	}
}
