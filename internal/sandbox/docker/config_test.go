package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"abl/internal/proc"
	"abl/internal/sandbox"
)

// The engine starts its init, so a missing command is an exit and not a failed start.
func TestCommandNotFound(t *testing.T) {
	l := newLab(t)
	desired := l.container("a")
	desired.Argv = []string{"/missing"}
	if exit, log := l.run(desired); exit != (sandbox.Exit{Code: 127}) || !strings.Contains(log, "/missing") {
		t.Errorf("missing command: got %+v and log %q, want exit code 127 and %q in the log", exit, log, "/missing")
	}
}

func TestFailedStart(t *testing.T) {
	l := newLab(t)
	holder := l.start(l.container("holder", "exit", "0"))
	_, err := l.Wait(t.Context(), holder)
	l.must(err)
	desired := l.container("a", "exit", "0")
	desired.Reach.Join = holder
	_, err = l.Create(t.Context(), desired)
	l.must(err)
	if err := l.Start(t.Context(), desired.Name); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("start joined to an ended container: got error %v, want one of a single line", err)
	}
	got, err := l.Status(t.Context(), desired.Name)
	if l.must(err); got.State != sandbox.Created || got.ExitCode == 0 || got.Error == "" {
		t.Errorf("status: got %+v, want state %s with an exit code and an error", got, sandbox.Created)
	}
	if _, err := l.Wait(t.Context(), desired.Name); err == nil || !strings.Contains(err.Error(), got.Error) {
		t.Errorf("wait for a container that never started: got error %v, want one with %q", err, got.Error)
	}
}

// The exit code of a container is 0 if only its child was killed for memory.
func TestMemoryKillOfAChild(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "hog-child")
	desired.Limits.Memory = 64 << 20
	if exit, log := l.run(desired); !exit.OOMKilled || exit.Code != 0 {
		t.Errorf("exit: got %+v, want code 0 and OOMKilled true; log:\n%s", exit, log)
	}
}

func TestStopOfProgramThatIgnoresSIGTERM(t *testing.T) {
	l := newLab(t)
	name := l.start(l.container("a", "deaf"))
	l.awaitLog(name, "deaf")
	l.must(l.Stop(t.Context(), name, time.Millisecond))
	exit, err := l.Wait(t.Context(), name)
	l.must(err)
	if exit != (sandbox.Exit{Code: 137}) {
		t.Errorf("exit: got %+v, want code 137", exit)
	}
}

// awaitLog waits until a running container has printed the words. The timeout of the test limits
// it.
func (l *lab) awaitLog(name, words string) {
	l.Helper()
	for {
		log, err := l.Logs(l.Context(), name, 1<<10)
		l.must(err)
		if strings.Contains(string(log), words) {
			return
		}
		l.must(proc.Pause(l.Context(), 5*time.Millisecond))
	}
}

func TestMissingMountSource(t *testing.T) {
	l := newLab(t)
	gone := filepath.Join(t.TempDir(), "gone")
	desired := l.container("a", "exit", "0")
	desired.Mounts = []sandbox.Mount{{What: sandbox.Specs, Source: gone, Target: "/specs"}}
	if _, err := l.Create(t.Context(), desired); err == nil || !strings.Contains(err.Error(), gone) {
		t.Errorf("mount of a missing directory: got error %v, want one with %q", err, gone)
	}
	if _, err := os.Lstat(gone); err == nil {
		t.Errorf("missing directory %s: got it created by the engine, want none", gone)
	}
}

func TestCallOutKeepsItsInode(t *testing.T) {
	l := newLab(t)
	out := filepath.Join(l.dir(map[string]string{"stdout": "before "}), "stdout")
	f, err := os.Open(out) // abl reads through a descriptor that it opened before the start
	l.must(err)
	defer f.Close()
	desired := l.container("a", "append", "/abl/out/stdout", "after", "--", "try-write", "/abl/out/other")
	desired.Mounts = []sandbox.Mount{{What: sandbox.CallOut, Source: out, Target: "/abl/out/stdout"}}
	if log := l.good(desired); !strings.Contains(log, "read-only file system") {
		t.Errorf("log of a write next to stdout: got %q, want %q in it", log, "read-only file system")
	}
	text, err := io.ReadAll(f)
	l.must(err)
	if string(text) != "before after" {
		t.Errorf("text from the open descriptor: got %q, want %q", text, "before after")
	}
	desired = l.container("b", "remove", "/abl/out/stdout")
	desired.Mounts = []sandbox.Mount{{What: sandbox.CallOut, Source: out, Target: "/abl/out/stdout"}}
	if exit, log := l.run(desired); exit.Code == 0 {
		t.Errorf("removal of a mounted file: got exit code 0 and log %q, want another code", log)
	}
}

func TestRoleMounts(t *testing.T) {
	l := newLab(t)
	src := l.dir(map[string]string{"a": "code"})
	git := filepath.Join(src, ".git")
	l.must(os.Mkdir(git, 0o755))
	l.own(git)
	desired := l.container("a", "try-write", "/workspace/src/b", "--", "try-write", "/workspace/src/.git/config", "--",
		"try-write", "/workspace/specs/x", "--", "try-write", "/etc", "--", "try-write", "/new", "--", "cat", "/workspace/src/a")
	desired.Mounts = []sandbox.Mount{
		{What: sandbox.GitDir, Source: git, Target: "/workspace/src/.git"},
		{What: sandbox.Workspace, Source: src, Target: "/workspace/src"},
		{What: sandbox.Specs, Source: l.dir(nil), Target: "/workspace/specs"},
	}
	want := "write /workspace/src/b: <nil>\n" +
		"write /workspace/src/.git/config: open /workspace/src/.git/config: read-only file system\n" +
		"write /workspace/specs/x: open /workspace/specs/x: read-only file system\n" +
		"write /etc: open /etc: is a directory\n" +
		"write /new: open /new: read-only file system\n" +
		"code"
	if log := l.good(desired); log != want {
		t.Errorf("log of the writes: got\n%s\nwant\n%s", log, want)
	}
}

func TestLogsOfBothStreams(t *testing.T) {
	l := newLab(t)
	line := strings.Repeat("x", 20<<10) // longer than one record of the engine's log
	log := l.good(l.container("a", "repeat", line, "20", "--", "warn", "oops"))
	if !strings.Contains(log, "oops") || strings.Count(log, line+"\n") != 20 {
		t.Errorf("log of both streams: got %d bytes with %d long lines, want 20 long lines and %q",
			len(log), strings.Count(log, line+"\n"), "oops")
	}
}

func TestCopyIn(t *testing.T) {
	l := newLab(t)
	scratch := sandbox.Volume{Name: sandbox.Name(l.project, "s"), Labels: l.labels("volume")}
	l.must(l.EnsureVolume(t.Context(), scratch))
	desired := l.container("a", "cat", "/scratch/note")
	desired.Mounts = []sandbox.Mount{{What: sandbox.Scratch, Source: scratch.Name, Target: "/scratch"}}
	_, err := l.Create(t.Context(), desired)
	l.must(err)
	l.must(l.CopyIn(t.Context(), desired.Name, "/scratch", copyOf(tarOf("note", []byte("brought")))))
	if err := l.CopyIn(t.Context(), desired.Name, "/", copyOf(tarOf("note", nil))); err == nil {
		t.Error("copy to the read-only root: got no error, want one")
	}
	l.must(l.Start(t.Context(), desired.Name))
	if _, err := l.Wait(t.Context(), desired.Name); err != nil {
		t.Fatal(err)
	}
	if log, err := l.Logs(t.Context(), desired.Name, 100); err != nil || string(log) != "brought" {
		t.Errorf("file in the container: got %q, error %v, want %q", log, err, "brought")
	}
}

// Engines reject a whole archive for one link that leads out of it, or for one too long path. An
// agent must not prevent the copy of its workspace with one.
func TestCopyInOfHostileTrees(t *testing.T) {
	l := newLab(t)
	scratch := sandbox.Volume{Name: sandbox.Name(l.project, "s"), Labels: l.labels("volume")}
	l.must(l.EnsureVolume(t.Context(), scratch))
	desired := l.container("a", "cat", "/scratch/tree/out")
	desired.Mounts = []sandbox.Mount{{What: sandbox.Scratch, Source: scratch.Name, Target: "/scratch"}}
	_, err := l.Create(t.Context(), desired)
	l.must(err)
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	for _, h := range []tar.Header{
		{Name: "tree/out", Typeflag: tar.TypeSymlink, Linkname: "../../etc/hosts"},
		{Name: "tree/further", Typeflag: tar.TypeSymlink, Linkname: "../../../../../.env"},
		{Name: "tree/itself", Typeflag: tar.TypeSymlink, Linkname: "itself"},
		{Name: "tree/" + strings.Repeat("x/", 2100), Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "tree/" + strings.Repeat("x/", 1900), Typeflag: tar.TypeDir, Mode: 0o755},
	} {
		l.must(w.WriteHeader(&h))
	}
	l.must(w.Close())
	l.must(l.CopyIn(t.Context(), desired.Name, "/scratch", copyOf(&tree)))
	l.must(l.Start(t.Context(), desired.Name))
	_, err = l.Wait(t.Context(), desired.Name)
	l.must(err)
	if log, err := l.Logs(t.Context(), desired.Name, 1<<10); err != nil || !strings.Contains(string(log), "localhost") {
		t.Errorf("file behind the link: got %q, error %v, want %q in it", log, err, "localhost")
	}
}

func TestAttach(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "echo")
	desired.Term = true
	_, err := l.Create(t.Context(), desired)
	l.must(err)
	var out bytes.Buffer
	exit, err := l.Attach(t.Context(), desired.Name, sandbox.Terminal{
		In: strings.NewReader("bye\n"), Out: &out, Size: func() (int, int) { return 80, 24 }, Resized: nil,
	})
	l.must(err)
	if exit != 9 || !strings.Contains(out.String(), `got "bye"`) {
		t.Errorf("attached program: got exit code %d and output %q, want 9 and %q", exit, out.String(), `got "bye"`)
	}
}

func TestAttachGivesUp(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "echo")
	desired.Term = true
	_, err := l.Create(t.Context(), desired)
	l.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	in, typist := io.Pipe()
	t.Cleanup(func() { l.must(typist.Close()) })
	go func() {
		typist.Write([]byte("hello\n")) //nolint:errcheck // the test checks the output
		l.awaitLog(desired.Name, "hello")
		cancel()
	}()
	_, err = l.Attach(ctx, desired.Name, sandbox.Terminal{In: in, Out: io.Discard, Size: func() (int, int) { return 0, 0 }})
	if err == nil || ctx.Err() == nil {
		t.Errorf("cancelled attach: got error %v, context %v, want an error after the cancellation", err, ctx.Err())
	}
}

// The probe reads its restrictions from the kernel in the container.
func TestSeenFromInside(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "cat", "/proc/self/status", "--", "cat", "/proc/sys/kernel/hostname", "--", "cat", "/proc/mounts", "--", "cat", "/proc/self/limits")
	desired.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 1 << 20, Mode: "1777"}, {Target: "/home/agent", Mode: "0700", Owned: true, Exec: true}}
	desired.Limits = sandbox.Limits{FileSize: 1 << 20, OpenFile: 512}
	uid, gid, _ := strings.Cut(l.user, ":")
	log := l.good(desired)
	for _, want := range []string{
		"Uid:\t" + uid + "\t", "Gid:\t" + gid + "\t", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
		"\nbox\n", "overlay / overlay ro,", "tmpfs /tmp tmpfs rw,nosuid,nodev,noexec,", "tmpfs /home/agent tmpfs rw,nosuid,nodev,relatime,mode=700,uid=" + uid,
		"Max core file size        0 ", "Max file size             1048576 ", "Max open files            512 ",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("seen from inside: got\n%s\nwant %q in it", log, want)
		}
	}
}

func TestLooseContainer(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "cat", "/proc/self/status", "--", "write", "/new", "text", "--", "cat", "/new")
	desired.User, desired.Loose = "", true
	log := l.good(desired)
	for _, want := range []string{"Uid:\t0\t", "CapEff:\t00000000000000cb", "NoNewPrivs:\t1", "Seccomp:\t2", "text"} {
		if !strings.Contains(log, want) {
			t.Errorf("seen from inside: got\n%s\nwant %q in it", log, want)
		}
	}
}

// The volumes that a service's image declares are removed with its container. Files copied to one
// before the start are there afterwards.
func TestLooseContainerTakesItsVolumesAlong(t *testing.T) {
	l := newLab(t)
	from := "FROM " + probeImage + "\nCOPY seed /data/seed\nVOLUME /data\n"
	var folder bytes.Buffer
	w := tar.NewWriter(&folder)
	for name, text := range map[string]string{"Dockerfile": from, "seed": "old"} {
		l.must(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		l.must(err)
	}
	l.must(w.Close())
	image := probeImage + "-volume"
	l.must(l.Build(t.Context(), &folder, sandbox.ImageBuild{Ref: image, Network: "none"}, nil))
	t.Cleanup(func() { l.must(l.RemoveImage(context.WithoutCancel(t.Context()), image)) })
	for _, ends := range []string{"removed", "swept"} {
		t.Run(ends, func(t *testing.T) {
			l := l.in(t)
			desired := l.container(ends, "cat", "/data/seed")
			desired.Image, desired.User, desired.Loose = image, "", true
			_, err := l.Create(t.Context(), desired)
			l.must(err)
			proof, err := l.Prove(t.Context(), desired)
			l.must(errors.Join(err, proof.Err(), l.CopyIn(t.Context(), desired.Name, "/data", copyOf(tarOf("seed", []byte("new"))))))
			l.must(l.Start(t.Context(), desired.Name))
			_, err = l.Wait(t.Context(), desired.Name)
			l.must(err)
			if log, err := l.Logs(t.Context(), desired.Name, 1<<10); err != nil || string(log) != "new" {
				t.Errorf("seed in the volume: got %q, error %v, want %q", log, err, "new")
			}
			made, err := l.api.ContainerInspect(t.Context(), desired.Name)
			l.must(err)
			if len(made.Mounts) != 1 || made.Mounts[0].Name == "" {
				t.Fatalf("volumes of the container: got %+v, want one with a name", made.Mounts)
			}
			if ends == "removed" {
				l.must(l.Remove(t.Context(), desired.Name))
			} else {
				_, err = l.Sweep(t.Context(), l.ours(), nil)
				l.must(err)
			}
			if _, err := l.api.VolumeInspect(t.Context(), made.Mounts[0].Name); !errdefs.IsNotFound(err) {
				t.Errorf("got %v, want that its volume does not exist", err)
			}
		})
	}
}

// A foreign image has no deadline, but its processes end with its holder, which has one.
func TestLooseContainerEndsWithItsHolder(t *testing.T) {
	l := newLab(t)
	holder, desired := l.container("holder", "block"), l.container("a", "block")
	holder.Reach.Endpoints = []sandbox.Endpoint{{Network: l.network("n", false)}}
	desired.User, desired.Loose, desired.Below, desired.Reach.Join = "", true, true, holder.Name
	for _, b := range []sandbox.ContainerConfig{holder, desired} {
		l.start(b)
	}
	l.must(l.Stop(t.Context(), holder.Name, 0))
	if exit, err := l.Wait(t.Context(), desired.Name); err != nil || exit.Code != 137 {
		t.Errorf("end with the holder: got %+v, error %v, want exit code 137", exit, err)
	}
}

// The test applies the checks of the CIS benchmark for Docker to real containers.
func TestBenchmarkOfRealContainers(t *testing.T) {
	l := newLab(t)
	net := l.network("n", false)
	holder := l.container("holder", "block")
	holder.Reach.Endpoints = []sandbox.Endpoint{{Network: net}}
	joined := l.container("joined", "block")
	joined.Reach.Join = holder.Name
	joined.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Size: 1 << 20, Mode: "1777"}}
	joined.Mounts = []sandbox.Mount{
		{What: sandbox.Workspace, Source: l.dir(nil), Target: "/workspace/src"},
		{What: sandbox.Specs, Source: l.dir(nil), Target: "/workspace/specs"},
	}
	alone := l.container("alone", "block")
	for _, desired := range []sandbox.ContainerConfig{holder, joined, alone} {
		desired.Limits = sandbox.Limits{Memory: 128 << 20, CPUs: 1, Pids: 64, FileSize: 1 << 30, OpenFile: 1024}
		l.start(desired)
		got, err := l.api.ContainerInspect(t.Context(), desired.Name)
		l.must(err)
		for check, holds := range cis(got) {
			if !holds {
				t.Errorf("check %q of container %q: got false, want true", check, desired.Name)
			}
		}
	}
}

func cis(c container.InspectResponse) map[string]bool {
	h := c.HostConfig
	mountsHold, tmpfsHold := true, true
	for _, m := range c.Mounts {
		inDocker := strings.Contains(m.Source, "docker.sock") || m.Source == "/" || strings.HasPrefix(m.Source, "/etc")
		mountsHold = mountsHold && !inDocker && m.Propagation == "rprivate"
	}
	for _, o := range h.Tmpfs {
		tmpfsHold = tmpfsHold && strings.Contains(o, "nosuid,nodev,noexec")
	}
	return map[string]bool{
		"5.2 no-new-privileges and a seccomp profile": strings.Join(h.SecurityOpt, " ") == "no-new-privileges:true seccomp="+filter(),
		"5.3 capabilities are dropped":                strings.Join(h.CapDrop, " ") == "ALL" && len(h.CapAdd) == 0,
		"5.4 it is not privileged":                    !h.Privileged,
		"5.5 no sensitive directory is mounted":       mountsHold,
		"5.7 no port below 1024 is mapped":            len(h.PortBindings) == 0 && !h.PublishAllPorts,
		"5.9 the host's network is not shared":        !h.NetworkMode.IsHost() && !h.NetworkMode.IsDefault(),
		"5.10 memory is limited":                      h.Memory > 0 && h.MemorySwap == h.Memory,
		"5.11 CPU is limited":                         h.NanoCPUs > 0,
		"5.12 the root is read-only":                  h.ReadonlyRootfs,
		"5.14 it is not restarted":                    h.RestartPolicy.Name == "no",
		"5.15 the host's processes are not shared":    h.PidMode == "",
		"5.16 the host's IPC is not shared":           h.IpcMode.IsPrivate(),
		"5.17 no device of the host is there":         len(h.Devices) == 0,
		"5.18 limits are its own":                     len(h.Ulimits) == 3,
		"5.19 propagation is not shared":              mountsHold,
		"5.20 the host's UTS is not shared":           h.UTSMode == "",
		"5.24 its cgroup is the default one":          h.CgroupParent == "",
		"5.28 processes are limited":                  h.PidsLimit != nil && *h.PidsLimit > 0,
		"5.29 it is not on docker0":                   c.NetworkSettings.Networks["bridge"] == nil,
		"5.30 the host's user names are not shared":   !h.UsernsMode.IsHost(),
		"5.31 it does not see the engine":             mountsHold,
		"4.1 its user is not root":                    c.Config.User != "" && !strings.HasPrefix(c.Config.User, "0"),
		"memory file systems are harmless":            tmpfsHold,
		"it has an init":                              h.Init != nil && *h.Init,
		"its cgroup names are its own":                h.CgroupnsMode.IsPrivate(),
		"its logs are bounded":                        h.LogConfig.Type == "json-file" && h.LogConfig.Config["max-size"] == "10m",
		"nothing of /proc is unmasked":                len(c.HostConfig.MaskedPaths) > 5 && len(c.HostConfig.ReadonlyPaths) > 3,
	}
}
