package phase

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/lab"
)

// labelsOf returns the labels of all objects of a project on the engine, by name.
func labelsOf(p *lab.Project) map[string]map[string]string {
	p.Helper()
	all := map[string]map[string]string{}
	for kind, format := range map[string]string{
		"container": "{{.Name}} {{json .Config.Labels}}", "network": "{{.Name}} {{json .Labels}}", "volume": "{{.Name}} {{json .Labels}}",
	} {
		list := []string{kind, "ls", "-q", "--filter", "label=abl.project=" + p.ID()}
		if kind == "container" {
			list = append(list, "-a")
		}
		for _, id := range strings.Fields(docker(p, list...)) {
			name, data, _ := strings.Cut(docker(p, kind, "inspect", "-f", format, id), " ")
			labels := map[string]string{}
			if err := json.Unmarshal([]byte(data), &labels); err != nil {
				p.Fatalf("labels of %s: %v", name, err)
			}
			all[name] = labels
		}
	}
	return all
}

// TestCleanRemovesOrphans checks that abl clean removes the objects of a project whose .abl was
// deleted, if all deadlines passed more than a week ago, and leaves the objects of every other project.
func TestCleanRemovesOrphans(t *testing.T) {
	p := newProject(t, nodeApp, builds(run("sleep 60")), verifies())
	watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.CallStart {
			_ = abl.Kill()
		}
	}, "phase", "1")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	of := func(root string) string { return host + ":" + filepath.Join(root, ".abl/state.json") }
	real, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	left := labelsOf(p)
	for name, labels := range left {
		if labels[sandbox.LabelDeadline] == "" || labels[sandbox.LabelState] != of(real) ||
			labels[sandbox.LabelDir] != host+":"+real {
			t.Errorf("%s: got labels %v, want a deadline, the state file %q and its directory", name, labels, of(real))
		}
	}
	if len(left) == 0 {
		t.Error("left by the killed abl: got nothing, want its containers")
	}

	old, image := time.Now().Add(-8*24*time.Hour), toolsImage(p)
	cleaned, moved := t.TempDir(), filepath.Join(t.TempDir(), "moved")
	begun := state.New(t.TempDir())
	if err := os.Mkdir(filepath.Join(begun.Root, ".abl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := state.Save(filepath.Join(begun.Root, ".abl/state.json"), begun); err != nil {
		t.Fatal(err)
	}
	id := func() string { return fmt.Sprintf("%x", rand.Text()[:6]) }
	var gone, kept []string
	for what, c := range map[string]struct {
		id, state string
		until     time.Time
		run       bool // its container runs
		want      *[]string
	}{
		"cleaned":         {id(), of(cleaned), old, false, &gone},
		"another id":      {id(), of(begun.Root), old, false, &gone},
		"exists":          {begun.Project, of(begun.Root), old, false, &kept},
		"runs":            {id(), of(cleaned), old, true, &kept},
		"recent":          {id(), of(cleaned), time.Now().Add(-6 * 24 * time.Hour), false, &kept},
		"moved":           {id(), of(moved), old, false, &kept},
		"another machine": {id(), "elsewhere.invalid:" + cleaned + "/.abl/state.json", old, false, &kept},
	} {
		labels := []string{}
		for name, value := range map[string]string{
			sandbox.LabelProject: c.id, sandbox.LabelState: c.state, sandbox.LabelDeadline: fmt.Sprint(c.until.Unix()),
		} {
			labels = append(labels, "--label", name+"="+value)
		}
		made := func(kind, key string, args ...string) string {
			name := sandbox.Name(c.id, key)
			t.Cleanup(func() { _ = exec.Command("docker", kind, "rm", "-f", name).Run() })
			*c.want = append(*c.want, what+"'s "+kind+" "+name)
			docker(t, append([]string{kind, "create"}, args...)...)
			return name
		}
		network := made("network", "net", append(labels, "--internal", sandbox.Name(c.id, "net"))...)
		volume := made("volume", "vol", append(labels, sandbox.Name(c.id, "vol"))...)
		container := made("container", "box", append(labels, "--name", sandbox.Name(c.id, "box"), "--network", network,
			"-v", volume+":/vol", image, "sleep", "600")...)
		if c.run {
			docker(t, "start", container)
		}
	}
	r := p.Must(0, "clean", "--orphans")
	for _, names := range []struct {
		list []string
		want bool
	}{{gone, false}, {kept, true}} {
		for _, said := range names.list {
			words := strings.Fields(said)
			kind, name := words[len(words)-2], words[len(words)-1]
			is := exec.Command("docker", kind, "inspect", name).Run() == nil
			if is != names.want || strings.Contains(r.Stdout, "removed "+name+"\n") == names.want {
				t.Errorf("%s: got exists %t, want %t; abl clean printed\n%s", said, is, names.want, r.Stdout)
			}
		}
	}
}

// TestEarlierProjectOfTheDirectory checks that after git clean -ffdx, abl clean and the next run
// remove the running agent of the directory's earlier project.
func TestEarlierProjectOfTheDirectory(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(run("sleep 600")), verifies())
	p.Git(".", "init", "-q")
	p.Git(".", "add", "-A")
	p.Git(".", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "settings")
	real, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	// leave kills abl during a call, deletes the state, and returns the objects on the engine.
	leave := func() (id string, names map[string]map[string]string) {
		watch(p, func(e state.Event, abl *os.Process) {
			if e.Kind == state.CallStart {
				_ = abl.Kill()
			}
		}, "phase", "1")
		id, names = p.ID(), labelsOf(p)
		p.Git(".", "clean", "-q", "-ffdx")
		if id == "" || len(names) == 0 || p.ID() != "" {
			t.Fatalf("project %q: got objects %v and id %q after git clean, want objects and no id", id, names, p.ID())
		}
		return id, names
	}
	still := func(id string) string {
		return docker(t, "ps", "-aq", "--filter", "label=abl.project="+id) +
			docker(t, "network", "ls", "-q", "--filter", "label=abl.project="+id)
	}
	for _, args := range [][]string{{"clean"}, {"phase", "1", "--progress", "plain"}} {
		id, names := leave()
		list := p.Must(0, "clean", "--all").Stdout
		row := regexp.MustCompile(`(?m)^` + id + ` +\d+[sm] .*:` + regexp.QuoteMeta(real) +
			` \(its .abl/state.json is gone\)$`)
		if !row.MatchString(list) {
			t.Errorf("abl clean --all: got\n%s\nwant a line that matches %s", list, row)
		}
		if args[0] == "phase" {
			script(p, builds(write("server.mjs", server)), verifies())
		}
		r := p.Must(0, args...)
		for name := range names {
			if said := r.Stdout + r.Stderr; !strings.Contains(said, strings.TrimPrefix(name, "/")) {
				t.Errorf("abl %s: got no %s in its output, want it:\n%s", args[0], name, said)
			}
		}
		if left := still(id); left != "" {
			t.Errorf("objects of project %s after abl %s: got %s, want none", id, args[0], left)
		}
	}
}
