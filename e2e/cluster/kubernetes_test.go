package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// control is a Kubernetes control plane without kubelets (scripts/kubernetes.sh), and a project. The test
// creates the nodes and reports what became of the pods, as a kubelet does.
type control struct {
	*lab.Project
	t *testing.T
}

func newControl(t *testing.T) *control {
	t.Helper()
	if os.Getenv("ABL_TEST_CLUSTER") == "" {
		t.Skip("only in make test-cluster")
	}
	const script = "../../scripts/kubernetes.sh"
	dir := t.TempDir()
	bin := strings.TrimSpace(run(t, "", script, "build"))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", filepath.Join(dir, "config"))
	t.Cleanup(func() { run(t, "", script, "down", dir) })
	run(t, "", script, "up", dir)
	c := &control{Project: &lab.Project{TB: t, Dir: t.TempDir()}, t: t}
	must(t, os.CopyFS(c.Dir, os.DirFS("testdata/project")))
	must(t, os.Rename(filepath.Join(c.Dir, "gitignore"), filepath.Join(c.Dir, ".gitignore")))
	origin := t.TempDir()
	c.Git("", "init", "-q", "--bare", "-b", "main", origin)
	c.Git("", "init", "-q", "-b", "main")
	c.Git("", "config", "user.name", "P")
	c.Git("", "config", "user.email", "p@example.com")
	c.Git("", "remote", "add", "origin", "file://"+origin)
	c.Must(0, "init", "--submit", "kubernetes")
	c.Git("", "add", "-A")
	c.Git("", "commit", "-qm", "specs")
	c.Git("", "push", "-q", "origin", "main")
	c.addNode("node1")
	return c
}

// in returns c for a subtest.
func (c *control) in(t *testing.T) *control {
	return &control{Project: &lab.Project{TB: t, Dir: c.Dir}, t: t}
}

// addNode adds a node, as a kubelet does when it starts.
func (c *control) addNode(name string) {
	c.t.Helper()
	text := strings.ReplaceAll(lab.File(c.t, "kubernetes/node.json"), "NAME", name)
	cmd := exec.Command("kubectl", "create", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// submit submits phase 1 and returns the name of the job.
func (c *control) submit() string {
	c.t.Helper()
	job, _ := strings.CutPrefix(strings.TrimSpace(c.Must(0, "submit", "1", "--on", "kubernetes").Stdout), "job.batch/")
	return job
}

// pod waits until a job has made n pods, and returns the name of the newest when a node has it.
func (c *control) pod(job string, n int) string {
	c.t.Helper()
	var names []string
	for end := time.Now().Add(2 * time.Minute); len(names) < n; { // kubectl wait does not wait for a label's first pod
		if time.Now().After(end) {
			c.t.Fatalf("pods of %s: got %q in 2 minutes, want %d", job, names, n)
		}
		names = strings.Fields(run(c.t, "", "kubectl", "get", "pods", "-l", "job-name="+job,
			"--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[*].metadata.name}"))
	}
	newest := names[len(names)-1]
	run(c.t, "", "kubectl", "wait", "--for=jsonpath={.spec.nodeName}", "pod/"+newest, "--timeout=120s")
	return newest
}

// ends reports that the containers of a pod ended, abl with this exit code.
func (c *control) ends(pod string, code int) {
	c.t.Helper()
	phase := "Succeeded"
	if code != 0 {
		phase = "Failed"
	}
	status := fmt.Sprintf(`{"status": {"phase": %q, "containerStatuses": [{"name": "abl", "image": "abl:latest",
		"imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": %d}}}]}}`, phase, code)
	run(c.t, "", "kubectl", "patch", "pod", pod, "--subresource=status", "--type=merge", "-p", status)
}

// is waits for a condition of a job, and returns the numbers of its failed pods.
func (c *control) is(job, condition string) string {
	c.t.Helper()
	run(c.t, "", "kubectl", "wait", "--for=condition="+condition, "job/"+job, "--timeout=120s")
	return run(c.t, "", "kubectl", "get", "job", job, "-o", "jsonpath={.status.failed}")
}

// last returns the last line of abl submit status.
func (c *control) last() row {
	c.t.Helper()
	var rows []row
	c.JSON(&rows, "submit", "status", "--on", "kubernetes", "--json")
	if len(rows) == 0 {
		c.t.Fatal("abl submit status: got no row, want one or more")
	}
	return rows[len(rows)-1]
}

// TestKubernetes: the Job of abl init ends, or starts its pod again, as docs/cluster.md says.
func TestKubernetes(t *testing.T) {
	plane := newControl(t)
	for _, e := range []struct {
		name  string
		codes []int // of the pods, in their order
		ends  string
		fails string // number of pods that count as failed
	}{
		{"passed", []int{0}, "Complete", ""},
		{"stuck", []int{3}, "Failed", "1"},
		{"an internal error", []int{1}, "Failed", "1"},
		{"the lease is another's", []int{11, 0}, "Complete", "1"},
		{"later", []int{75, 0}, "Complete", "1"},
		{"killed", []int{137, 3}, "Failed", "2"},
	} {
		t.Run(e.name, func(t *testing.T) {
			c := plane.in(t)
			job := c.submit()
			for i, code := range e.codes {
				c.ends(c.pod(job, i+1), code)
			}
			if failed := c.is(job, e.ends); failed != e.fails {
				t.Errorf("failed pods: got %q, want %q", failed, e.fails)
			}
			if got, want := c.last(), e.codes[len(e.codes)-1]; got.Exit == nil || *got.Exit != want || got.Node != "node1" {
				t.Errorf("abl submit status: got %+v, want exit code %d on node1", got, want)
			}
			run(t, "", "kubectl", "delete", "job", job)
		})
	}
	t.Run("eviction", func(t *testing.T) {
		c := plane.in(t)
		job := c.submit()
		pod := c.pod(job, 1)
		cmd := exec.Command("kubectl", "create", "--raw", "/api/v1/namespaces/default/pods/"+pod+"/eviction", "-f", "-")
		cmd.Stdin = strings.NewReader(fmt.Sprintf(
			`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, pod))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		c.ends(pod, 143)
		c.ends(c.pod(job, 2), 0)
		if failed := c.is(job, "Complete"); failed != "" {
			t.Errorf("failed pods: got %q, want none: an eviction does not count", failed)
		}
		run(t, "", "kubectl", "delete", "job", job)
	})
	t.Run("lost node", func(t *testing.T) {
		c := plane.in(t)
		job := c.submit()
		pod := c.pod(job, 1)
		c.addNode("node2")
		run(t, "", "kubectl", "delete", "node", "node1")
		run(t, "", "kubectl", "wait", "--for=delete", "pod/"+pod, "--timeout=180s")
		c.ends(c.pod(job, 1), 0)
		if failed := c.is(job, "Complete"); failed != "" {
			t.Errorf("failed pods: got %q, want none: a lost node does not count", failed)
		}
		if got := c.last(); got.Node != "node2" {
			t.Errorf("abl submit status: got %+v, want node2", got)
		}
	})
}
