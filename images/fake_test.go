package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"abl/internal/sandbox"
)

// fakeEngine stores images as labels. Like in a real engine, a child inherits its parent's
// labels, and each build leaves a stage behind.
type fakeEngine struct {
	arch     string
	images   map[string]map[string]string
	digest   string // result of a pull; empty means no registry
	pulls    int
	built    []string
	contexts map[string]map[string]string // of each build, by reference
	args     map[string]map[string]string
	networks []string
	fail     func(ref, network string) []string // output of a build that fails
	removed  []string
	load     func() // in place of an archive's images
	mu       sync.Mutex
}

func newFake() *fakeEngine {
	return &fakeEngine{
		arch:     "x86_64",
		digest:   "debian@sha256:abc",
		images:   map[string]map[string]string{},
		contexts: map[string]map[string]string{},
		args:     map[string]map[string]string{},
	}
}

func (f *fakeEngine) Info(context.Context) (sandbox.Info, error) {
	return sandbox.Info{Arch: f.arch}, nil
}

func (f *fakeEngine) ListImages(_ context.Context, label string) (map[string]map[string]string, map[string]int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, sizes := map[string]map[string]string{}, map[string]int64{}
	for ref, l := range f.images {
		if l[label] != "" {
			all[ref], sizes[ref] = maps.Clone(l), 1_500_000
		}
	}
	return all, sizes, nil
}

func (f *fakeEngine) RemoveImage(_ context.Context, ref string) error {
	f.removed = append(f.removed, ref)
	delete(f.images, ref)
	return nil
}

func (f *fakeEngine) SaveImages(_ context.Context, w io.Writer, refs []string) error {
	_, err := fmt.Fprint(w, strings.Join(refs, "\n"))
	return err
}

func (f *fakeEngine) LoadImages(_ context.Context, r io.Reader) ([]string, error) {
	if f.load != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.load()
	}
	text, err := io.ReadAll(r)
	return strings.Split(string(text), "\n"), err
}

func (f *fakeEngine) ImageID(_ context.Context, ref string) (string, bool, error) {
	labels, ok := f.images[ref]
	return "id of " + ref + labels["digest"], ok, nil
}

func (f *fakeEngine) Pull(_ context.Context, ref string, progress func(string)) (string, error) {
	f.pulls++
	if f.digest == "" {
		return "", errors.New("no such host")
	}
	progress("Pulling from " + ref)
	if ref != registryBase {
		f.images[ref] = map[string]string{}
	}
	return f.digest, nil
}

func (f *fakeEngine) Build(_ context.Context, r io.Reader, b sandbox.ImageBuild, progress func(string)) error {
	ref, network, args := b.Ref, b.Network, b.Args
	files, err := untar(r)
	if err != nil {
		return err
	}
	f.contexts[ref], f.args[ref] = files, args
	f.networks = append(f.networks, network)
	labels := maps.Clone(f.images[args["ABL_IMAGE"]])
	if labels == nil {
		labels = map[string]string{}
	}
	if id := args["ABL_BUILD"]; id != "" {
		stage := maps.Clone(labels)
		stage[labelStage] = id
		f.images["sha256:stage-"+ref] = stage
	}
	progress("Step 1/2 : FROM x")
	if f.fail != nil {
		if lines := f.fail(ref, network); lines != nil {
			for _, l := range lines {
				progress(l)
			}
			return errors.New("the command returned a non-zero code: 100")
		}
	}
	readLabels(files[dockerfileName], labels)
	f.images[ref] = labels
	f.built = append(f.built, ref)
	return nil
}

// parent returns the image on which an image was built.
func (f *fakeEngine) parent(ref string) string { return f.args[ref]["ABL_IMAGE"] }

func readLabels(dockerfile string, into map[string]string) {
	for line := range strings.Lines(dockerfile) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "LABEL ")
		if !ok || strings.HasPrefix(rest, labelStage) {
			continue
		}
		for _, pair := range strings.Fields(rest) {
			k, v, _ := strings.Cut(pair, "=")
			into[k] = strings.Trim(v, `"`)
		}
	}
}

func untar(r io.Reader) (map[string]string, error) {
	files := map[string]string{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		files[h.Name] = string(data)
		if h.Linkname != "" {
			files[h.Name] = "-> " + h.Linkname
		}
	}
}

// staticELF returns the smallest file that debug/elf accepts as a program. With interp it is a
// dynamic one.
func staticELF(arch string, interp bool) []byte {
	machine := map[string]byte{"amd64": 62, "arm64": 183}[arch]
	kind := byte(1) // PT_LOAD
	if interp {
		kind = 3 // PT_INTERP
	}
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[20] = 2, machine, 1
	b[32], b[52], b[54], b[56], b[58] = 64, 64, 56, 1, 64
	b[64] = kind
	return b
}

func testMaker(t *testing.T, e *fakeEngine) *Maker {
	t.Helper()
	dir := t.TempDir()
	m := &Maker{
		Engine: e,
		Env:    environ("ABL_HELPER", filepath.Join(dir, "abl-cmd"), "ABL_GATEWAY", filepath.Join(dir, "abl-gateway")),
	}
	for _, path := range []string{m.Env("ABL_HELPER"), m.Env("ABL_GATEWAY")} {
		if err := os.WriteFile(path, staticELF(goArch(e.arch), false), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// otherArch returns an architecture for which this machine cannot build a base.
func otherArch() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}
