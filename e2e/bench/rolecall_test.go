// Package bench measures how long the user waits, as ratios to an anchor that alternates with the
// measured work in the same run.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/images"
	"abl/internal/git"
	"abl/internal/helper"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
	"abl/roles/call"
)

// noOp is an agent that does nothing.
var noOp = agent.Program("none", agent.Command{Argv: []string{"/bin/true"}})

// rig has all that a role call needs, as abl creates it for a phase.
type rig struct {
	testing.TB
	engine  *docker.Engine
	project state.Project
	file    *state.File
	repo    *git.Repo
	runner  *call.Runner
	image   string
	holder  string
	book    *ledger.Ledger
	calls   int
	unswept bool // skips the sweep after a call
}

const uid = 10001

func newRig(b *testing.B) *rig {
	lab.Engine(b)
	r := &rig{TB: b}
	root := b.TempDir()
	r.project = state.NewProject(root, "src", ".abl/tests")
	for _, dir := range []string{r.project.Src, r.project.Tests, r.project.Specs(), r.project.Calls()} {
		r.must(os.MkdirAll(dir, 0o755))
	}
	r.file = state.New(root)
	r.file.Phases["1"] = &state.Phase{Status: state.Building, Round: 1, Iteration: 1, Step: 1, Attempt: 1}
	var err error
	r.engine, err = docker.Connect(b.Context(), os.Getenv)
	r.must(err)
	m := &images.Maker{Engine: r.engine, Env: lab.Env(b)}
	r.image, err = m.Ensure(b.Context(), images.Want{Agent: "tools"})
	r.must(err)
	r.holder, err = m.Holder(b.Context())
	r.must(err)
	b.Cleanup(func() {
		_, err := r.engine.Sweep(context.WithoutCancel(b.Context()),
			map[string]string{sandbox.LabelProject: r.file.Project}, nil)
		r.must(err)
	})
	r.tree(10_000)
	r.repo, err = git.Open(r.project.Src, git.Options{})
	r.must(err)
	_, err = r.repo.Snapshot(b.Context(), git.Message{Subject: "begin"})
	r.must(err)
	r.book = ledger.Open(r.project.Ledger())
	r.runner = &call.Runner{
		Containers: r.containers(r.engine),
		Project:    r.project,
		Output:     1 << 30,
		Timeout:    time.Minute,
		Out:        state.Discard,
	}
	return r
}

// containers returns the project's containers on an engine.
func (r *rig) containers(engine sandbox.Engine) *boundary.Containers {
	return &boundary.Containers{
		Engine: engine,
		ID:     r.file.Project,
		Phase:  1,
		UID:    uid,
		GID:    uid,
		Root:   os.Geteuid() == 0,
		Limits: limits,
		Helper: r.holder,
		Pool:   "10.231.0.0/16",
	}
}

var limits = sandbox.Limits{Memory: 4 << 30, CPUs: 2, Pids: 512, FileSize: 1 << 30, OpenFile: 4096}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) path(i int) string {
	return filepath.Join(r.project.Src, fmt.Sprintf("d%02d/e%d/f%02d.txt", i/1000, i/100%10, i%100))
}

func (r *rig) tree(n int) {
	for i := range n {
		r.must(os.MkdirAll(filepath.Dir(r.path(i)), 0o755))
		r.must(os.WriteFile(r.path(i), []byte(strings.Repeat(fmt.Sprintf("line %d\n", i), 60)), 0o644))
	}
}

// edit changes ten files.
func (r *rig) edit(round int) {
	for i := range 10 {
		r.must(os.WriteFile(r.path((i*977+round)%10_000), fmt.Appendf(nil, "round %d\n", round), 0o644))
	}
}

// call runs a whole role call: container, snapshot, ledger and state, all durable.
func (r *rig) call(b *testing.B) {
	r.calls++
	role, ctx := roles.Builder, b.Context()
	key := roles.Key(1, role, r.calls, 1)
	o, err := r.runner.Run(ctx, call.Job{
		Role:   role,
		Agent:  noOp,
		Image:  r.image,
		Place:  role.Name,
		Cmds:   helper.CmdSpec{Role: role.Name},
		Call:   agent.Call{ID: key, Role: role.Name, Phase: 1, Iteration: 1, Step: r.calls, Attempt: 1},
		Prompt: func() (string, string, error) { return "nothing\n", "", nil },
	})
	r.must(err)
	if o.Class != outcome.Done {
		r.Fatalf("outcome of call %s: got %s (%s), want %s", key, o.Class, o.Reason, outcome.Done)
	}
	_, err = r.book.Append([]ledger.Row{{
		Timestamp: ledger.Stamp(o.Ended),
		Phase:     "1",
		Role:      role.Name,
		CallID:    key,
		Source:    ledger.Nobody,
	}})
	r.must(err)
	m := git.Message{Subject: "step", Call: key}
	if !r.unswept {
		m.Keep = func(f state.Found) error { return roles.Record{Dir: r.project.Call(key)}.Write(roles.FoundFile, f) }
	}
	_, err = r.repo.Snapshot(ctx, m)
	r.must(err)
	r.must(state.Save(r.project.State(), r.file))
}

// dockerRun runs the anchor: the same container with docker run, without snapshot, ledger and
// state.
func (r *rig) dockerRun() {
	args := []string{"run", "--rm", "--label", sandbox.LabelProject + "=" + r.file.Project, "--network",
		r.runner.Network("builder"),
		"--user", fmt.Sprintf("%d:%d", uid, uid), "--init", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true", "--read-only",
		"--ipc", "private", "--cgroupns", "private", "--shm-size", "16m", "--oom-score-adj", "500", "--memory", "4g", "--memory-swap", "4g",
		"--cpus", "2", "--pids-limit", "512", "--ulimit", "core=0", "--ulimit", "nofile=4096", "--ulimit", "fsize=1073741824",
		"--log-opt", "max-size=10m", "--log-opt", "max-file=2", "--dns", "127.0.0.1", "--sysctl", "net.ipv6.conf.all.disable_ipv6=1",
		"--tmpfs", "/tmp:rw,nosuid,nodev,size=512m,mode=1777", "--tmpfs", helper.Home +
			":rw,nosuid,nodev,size=256m,mode=0700",
		"--mount", "type=bind,source=" + r.project.Src + ",target=" + helper.Src,
		"--mount", "type=bind,source=" + r.project.Src + "/.git,target=" + helper.Src + "/.git,readonly",
		"--mount", "type=bind,source=" + r.project.Specs() + ",target=" + helper.Specs + ",readonly",
		"--entrypoint", "/bin/true", r.image}
	if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
		r.Fatalf("docker run: %v\n%s", err, out)
	}
}

// BenchmarkRoleCall compares `docker run --rm` with a role call in the same container. The agent
// does nothing, and ten of ten thousand files have changed. The limit is a ratio of 1.0.
func BenchmarkRoleCall(b *testing.B) {
	r := newRig(b)
	r.call(b) // creates the holder, which happens once per phase
	r.dockerRun()
	var ours, theirs, ratios []float64
	for round := 0; b.Loop(); round++ {
		r.edit(round)
		pair := [2]func(){func() { r.call(b) }, r.dockerRun}
		var took [2]float64
		for k := range pair {
			which := (k + round) % 2
			begun := time.Now()
			pair[which]()
			took[which] = time.Since(begun).Seconds() * 1000
		}
		ours, theirs, ratios = append(ours, took[0]), append(theirs, took[1]), append(ratios, took[0]/took[1])
	}
	b.ReportMetric(median(ours), "call-ms")
	b.ReportMetric(median(theirs), "docker-run-ms")
	b.ReportMetric(median(ratios), "x-docker-run")
}

// BenchmarkVersion reports the median time and the peak memory of `abl --version`.
func BenchmarkVersion(b *testing.B) {
	bin, measure := lab.Bin(b, "abl"), peak(b)
	var took, memory []float64
	for b.Loop() {
		cmd := exec.Command(bin, "--version")
		begun := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		took = append(took, time.Since(begun).Seconds()*1000)
		memory = append(memory, megabytes(b, measure, exec.Command(bin, "--version")))
	}
	b.ReportMetric(median(took), "version-ms")
	b.ReportMetric(median(memory), "peak-MB")
}

// BenchmarkOutput reports abl's peak memory while an agent prints 200 MB. It fails if a byte is
// lost.
func BenchmarkOutput(b *testing.B) {
	lab.Engine(b)
	measure := peak(b)
	var memory []float64
	for b.Loop() {
		p := lab.From(b, os.DirFS("testdata/flood"))
		memory = append(memory, megabytes(b, measure, p.Cmd("phase", "1", "--json")))
		var o struct {
			Output int64 `json:"output_bytes"`
		}
		if err := json.Unmarshal([]byte(p.Read(".abl/logs/calls/p1-build-1.1/outcome.json")), &o); err != nil {
			b.Fatal(err)
		}
		fi, err := os.Stat(filepath.Join(p.Dir, ".abl/logs/calls/p1-build-1.1/stdout"))
		if err != nil || fi.Size() < 200_000_000 || fi.Size() != o.Output {
			b.Fatalf("stdout of the call: got %d bytes stored, %d read, error %v, want both equal and 200 MB or more",
				fi.Size(), o.Output, err)
		}
	}
	b.ReportMetric(median(memory), "peak-MB")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
