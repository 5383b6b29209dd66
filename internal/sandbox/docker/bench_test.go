package docker

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"abl/internal/sandbox"
)

// BenchmarkNoOpBox compares the life of a container that does nothing (joined to a holder on an
// isolated network, hardened, three mounts) with `docker run --rm` with the same flags on the same
// network. It reports the median of the paired ratios, which other load affects least.
func BenchmarkNoOpContainer(b *testing.B) {
	l := newLab(b)
	net := l.network("n", false)
	holder := l.container("holder", "block")
	holder.Reach.Endpoints = []sandbox.Endpoint{{Network: net}}
	l.start(holder)
	desired := l.container("a", "exit", "0")
	desired.Reach.Join = holder.Name
	desired.Limits = sandbox.Limits{Memory: 1 << 30, CPUs: 2, Pids: 512, FileSize: 1 << 30, OpenFile: 4096}
	desired.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 64 << 20, Mode: "1777"}}
	desired.Mounts = []sandbox.Mount{
		{What: sandbox.Workspace, Source: l.dir(nil), Target: "/workspace/src"},
		{What: sandbox.Specs, Source: l.dir(nil), Target: "/workspace/specs"},
		{What: sandbox.CallIn, Source: l.dir(nil), Target: "/abl/in"},
	}
	var ours, theirs, ratios []float64
	for i := 0; b.Loop(); i++ {
		desired.Name = sandbox.Name(l.project, fmt.Sprintf("a%d", i))
		var o, d time.Duration
		if i%2 == 0 {
			o, d = l.timed(func() { l.noOp(desired) }), l.timed(func() { l.dockerRun(net, desired) })
		} else {
			d, o = l.timed(func() { l.dockerRun(net, desired) }), l.timed(func() { l.noOp(desired) })
		}
		ours, theirs = append(ours, float64(o.Milliseconds())), append(theirs, float64(d.Milliseconds()))
		ratios = append(ratios, float64(o)/float64(d))
	}
	b.ReportMetric(median(ours), "container-ms")
	b.ReportMetric(median(theirs), "docker-run-ms")
	b.ReportMetric(median(ratios), "ratio")
}

func (l *lab) timed(act func()) time.Duration {
	start := time.Now()
	act()
	return time.Since(start)
}

func (l *lab) noOp(desired sandbox.ContainerConfig) {
	l.Helper()
	l.good(desired)
	l.must(l.Remove(l.Context(), desired.Name))
}

func (l *lab) dockerRun(net string, desired sandbox.ContainerConfig) {
	l.Helper()
	args := []string{"run", "--rm", "--label", sandbox.LabelProject + "=" + l.project, "--network", net, "--user", desired.User,
		"--init", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true", "--read-only", "--ipc", "private", "--cgroupns", "private",
		"--shm-size", "16m", "--oom-score-adj", "500", "--memory", "1g", "--memory-swap", "1g", "--cpus", "2", "--pids-limit", "512",
		"--ulimit", "core=0", "--ulimit", "nofile=4096", "--ulimit", "fsize=1073741824", "--log-opt", "max-size=10m", "--log-opt", "max-file=2",
		"--tmpfs", "/tmp:rw,nosuid,nodev,noexec,size=64m,mode=1777", "--dns", "127.0.0.1", "--sysctl", "net.ipv6.conf.all.disable_ipv6=1"}
	for _, m := range mounts(desired.Mounts) {
		arg := fmt.Sprintf("type=bind,source=%s,target=%s", m.Source, m.Target)
		if m.ReadOnly {
			arg += ",readonly"
		}
		args = append(args, "--mount", arg)
	}
	args = append(args, "--entrypoint", desired.Argv[0], desired.Image)
	out, err := exec.CommandContext(l.Context(), "docker", append(args, desired.Argv[1:]...)...).CombinedOutput()
	if err != nil {
		l.Fatalf("docker run: %v\n%s", err, out)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
