package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"

	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

const testPool = "10.213.0.0/16"

// probeImage is unique to this run, so that parallel runs do not remove each other's image.
var probeImage = "abl-test-docker:" + strings.ToLower(rand.Text()[:8])

func TestMain(m *testing.M) {
	code := m.Run()
	if err := dropProbe(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "cannot remove the probe's image:", err)
		code = 1
	}
	os.Exit(code)
}

// connectOnce shares one engine and its image between the tests.
var connectOnce = sync.OnceValues(func() (*Engine, error) {
	ctx := context.Background()
	e, err := Connect(ctx, os.Getenv)
	if err != nil {
		return nil, err
	}
	imported = true
	return e, importProbe(ctx, e)
})

var imported bool // written under connectOnce, read after the last test

func dropProbe(ctx context.Context) error {
	if !imported {
		return nil
	}
	e, err := connectOnce()
	if e == nil {
		return err
	}
	_, err = e.api.ImageRemove(ctx, probeImage, image.RemoveOptions{PruneChildren: true})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

func engine(t testing.TB) *Engine {
	t.Helper()
	if os.Getenv("ABL_TEST_ENGINE") == "off" {
		t.Skip("ABL_TEST_ENGINE=off: tests with a real engine are switched off")
	}
	e, err := connectOnce()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// importProbe builds the probe without libc and creates an image with nothing else.
func importProbe(ctx context.Context, e *Engine) error {
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "probe"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the probe: %w\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "probe"))
	if err != nil {
		return err
	}
	progress, err := e.api.ImageImport(ctx, image.ImportSource{Source: tarOf("probe", program), SourceName: "-"}, probeImage,
		image.ImportOptions{Changes: []string{"LABEL " + sandbox.LabelProject + "=test-docker"}})
	if err != nil {
		return err
	}
	defer progress.Close()
	_, err = io.Copy(io.Discard, progress)
	return err
}

func tarOf(name string, content []byte) io.Reader {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))})
	w.Write(content)
	w.Close()
	return &out
}

// copyOf writes the content of r once.
func copyOf(r io.Reader) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}
}

// lab is the environment of one test on the engine. Everything in it has its project label and is
// removed after the test.
type lab struct {
	testing.TB
	*Engine
	project, user string
}

// in returns the same lab for a subtest.
func (l *lab) in(t testing.TB) *lab {
	c := *l
	c.TB = t
	return &c
}

func newLab(t testing.TB) *lab {
	l := &lab{TB: t, Engine: engine(t), project: "test-docker-" + strings.ToLower(rand.Text()[:8]), user: testUser()}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := l.Sweep(ctx, l.ours(), nil); err != nil {
			t.Error(err)
		}
		of := filters.NewArgs(filters.Arg("label", sandbox.LabelProject+"="+l.project))
		networks, err := l.api.NetworkList(ctx, network.ListOptions{Filters: of})
		containers, berr := l.api.ContainerList(ctx, container.ListOptions{All: true, Filters: of})
		if err := errors.Join(err, berr); err != nil || len(networks)+len(containers) > 0 {
			t.Errorf("after the sweep: got %d networks and %d containers, error %v, want 0",
				len(networks), len(containers), err)
		}
	})
	return l
}

// testUser is the current user, or nobody if that is root.
func testUser() string {
	if os.Getuid() == 0 {
		return "65534:65534"
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}

func (l *lab) ours() map[string]string { return map[string]string{sandbox.LabelProject: l.project} }

func (l *lab) labels(kind string) map[string]string {
	return map[string]string{sandbox.LabelProject: l.project, sandbox.LabelKind: kind}
}

func (l *lab) container(name string, args ...string) sandbox.ContainerConfig {
	return sandbox.ContainerConfig{
		Name: sandbox.Name(l.project, name), Image: probeImage, Labels: l.labels("role"),
		User: l.user, Argv: append([]string{"/probe"}, args...),
	}
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) start(b sandbox.ContainerConfig) string {
	l.Helper()
	_, err := l.Create(l.Context(), b)
	l.must(err)
	l.must(l.Start(l.Context(), b.Name))
	return b.Name
}

// run runs a container to its end and returns its output.
func (l *lab) run(b sandbox.ContainerConfig) (sandbox.Exit, string) {
	l.Helper()
	name := l.start(b)
	exit, err := l.Wait(l.Context(), name)
	l.must(err)
	log, err := l.Logs(l.Context(), name, 1<<20)
	l.must(err)
	return exit, string(log)
}

// good is run for a container that must exit with 0.
func (l *lab) good(b sandbox.ContainerConfig) string {
	l.Helper()
	exit, log := l.run(b)
	if exit.Code != 0 {
		l.Fatalf("container %q: got %+v, want exit code 0; log:\n%s", b.Name, exit, log)
	}
	return log
}

func (l *lab) network(name string, egress bool) string {
	l.Helper()
	n := sandbox.Network{Name: sandbox.Name(l.project, name), Labels: l.labels("network"), Egress: egress, Pool: testPool}
	l.must(l.EnsureNetwork(l.Context(), n))
	return n.Name
}

// dir creates a directory with files that belongs to the containers' user.
func (l *lab) dir(files map[string]string) string {
	l.Helper()
	dir := l.TempDir()
	l.own(dir)
	for name, text := range files {
		path := filepath.Join(dir, name)
		l.must(os.WriteFile(path, []byte(text), 0o644))
		l.own(path)
	}
	return dir
}

func (l *lab) own(path string) {
	l.Helper()
	var uid, gid int
	_, err := fmt.Sscanf(l.user, "%d:%d", &uid, &gid)
	l.must(err)
	l.must(os.Chown(path, uid, gid))
}

func TestConform(t *testing.T) {
	sandboxtest.Conform(t, func(t *testing.T) sandboxtest.Subject {
		l := newLab(t)
		return sandboxtest.Subject{
			Engine: l.Engine, Image: probeImage, Missing: "abl-test-docker:missing",
			Project: l.project, User: l.user, Pool: testPool,
			Exit:  func(code string) []string { return []string{"/probe", "exit", code} },
			Print: func(text string) []string { return []string{"/probe", "print", text} },
			Block: []string{"/probe", "block"},
		}
	})
}

// onThisMachine skips a test unless the engine is on this machine, and always with the build tag
// portable.
func onThisMachine(t *testing.T) {
	t.Helper()
	if portable || runtime.GOOS != "linux" {
		t.Skip("no engine counts as one on this machine")
	}
}
