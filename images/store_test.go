package images

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"abl/internal/sandbox"
	"abl/internal/toolchain"
)

func TestSaveLoadRemove(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	var file bytes.Buffer
	if _, err := m.Save(t.Context(), &file); !errors.Is(err, sandbox.ErrNoImage) ||
		!strings.Contains(err.Error(), "base, tools, gemini") {
		t.Errorf("save without images: got error %v, want %v with %q", err, sandbox.ErrNoImage, "base, tools, gemini")
	}
	if _, err := m.Load(t.Context(), strings.NewReader("abl/base:other")); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("load of an unrelated file: got error %v, want %v", err, sandbox.ErrNoImage)
	}
	for _, w := range []Want{
		{Agent: "gemini"},
		{Agent: Tools},
		{Agent: "codex"},
		{Agent: "gemini", Toolchain: toolchain.Set{Python: "3.13"}},
	} {
		if _, err := m.Ensure(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Ensure(t.Context(), Want{Agent: Tools, Toolchain: toolchain.Set{Go: "1.26"}}); err != nil {
		t.Fatal(err)
	}
	saved, err := m.Save(t.Context(), &file)
	if err != nil || names(saved) != "base tools go-1.26.10 python-3.13 codex gemini gemini" {
		t.Errorf("saved images: got %q, error %v, want %q",
			saved, err, "base tools go-1.26.10 python-3.13 codex gemini gemini")
	}
	some, err := m.Save(t.Context(), io.Discard, "tools")
	if err != nil || names(some) != "tools" {
		t.Fatalf("with only the tools: got saved images %q, error %v, want tools", names(some), err)
	}
	bare := newFake() // an engine with only these images
	bare.images[some[0]] = e.images[some[0]]
	other := &Maker{Engine: bare, Env: m.Env, Offline: true}
	if _, err := other.Load(t.Context(), strings.NewReader(some[0])); err != nil {
		t.Errorf("load of only the tools: got error %v, want none", err)
	}
	if _, err := other.Ensure(t.Context(), Want{Agent: Tools}); err != nil || names(bare.built) != "run-tools" {
		t.Errorf("with only the tools: got built images %q, error %v, want run-tools", names(bare.built), err)
	}
	if _, err := m.Save(t.Context(), io.Discard, "claude"); !errors.Is(err, sandbox.ErrNoImage) ||
		!strings.Contains(err.Error(), "claude: run `abl images build claude`") {
		t.Errorf("save of an agent without an image: got error %v, want %v with the command to build it",
			err, sandbox.ErrNoImage)
	}
	loaded, err := m.Load(t.Context(), &file)
	if err != nil || !slices.Equal(loaded, saved) {
		t.Errorf("loaded images: got %q, error %v, want %q", loaded, err, saved)
	}
	if gone, err := m.Remove(t.Context(), "codex", "claude", "go"); err != nil ||
		names(gone) != "codex go-1.26.10 run-codex run-go-1.26.10" {
		t.Errorf("removed images of one agent and Go: got %q, error %v, want %q",
			names(gone), err, "codex go-1.26.10 run-codex run-go-1.26.10")
	}
	e.images["sha256:left"] = map[string]string{LabelImage: "tools"}
	gone, err := m.Remove(t.Context())
	if err != nil || names(gone) != "base gemini gemini python-3.13 run-gemini run-gemini run-tools tools sha256" {
		t.Errorf("removed images: got %q, error %v, want %q",
			names(gone), err, "base gemini gemini python-3.13 run-gemini run-gemini run-tools tools sha256")
	}
	if len(e.images) != 0 {
		t.Errorf("remaining images: got %v, want none", e.images)
	}
}

func TestStatus(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	line := func() string {
		t.Helper()
		all, err := m.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, st := range all {
			if st.Have != (st.Ref != "" && e.images[st.Ref] != nil) {
				t.Errorf("status: got %+v, want Have %v as on the engine", st, !st.Have)
			}
			if st.Have {
				s += st.Name + " "
			}
		}
		return s
	}
	if got := line(); got != "" {
		t.Errorf("empty engine: got %q, want no image", got)
	}
	if _, err := m.Ensure(t.Context(), Want{Agent: Tools}); err != nil {
		t.Fatal(err)
	}
	if got := line(); got != "base tools run-tools " {
		t.Errorf("engine with the tools: got %q, want %q", got, "base tools run-tools ")
	}
	if _, err := m.Gateway(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := line(); got != "base tools run-tools gateway " {
		t.Errorf("engine with the gateway: got %q, want %q", got, "base tools run-tools gateway ")
	}
	// Existing languages are listed, with the agents on them.
	for _, w := range []Want{
		{Agent: Tools, Toolchain: toolchain.Set{Go: "1.26"}},
		{Agent: "codex", Toolchain: toolchain.Set{Go: "1.26"}},
	} {
		if _, err := m.Ensure(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if got := line(); got != "base tools go-1.26.10 codex run-tools run-go-1.26.10 run-codex gateway " {
		t.Errorf("engine with Go: got %q, want %q",
			got, "base tools go-1.26.10 codex run-tools run-go-1.26.10 run-codex gateway ")
	}
	m.Env = also(m.Env, "ABL_HELPER", "/nowhere")
	if all, err := m.Status(t.Context()); !errors.Is(err, ErrHelper) || len(all) != 9 {
		t.Errorf("without a helper: got %v, error %v, want 9 images and %v", all, err, ErrHelper)
	}
	m.Env = also(m.Env, "ABL_GATEWAY", "/nowhere")
	if all, err := m.Status(t.Context()); !errors.Is(err, ErrHelper) || len(all) != 8 ||
		!strings.Contains(err.Error(), "ABL_GATEWAY") {
		t.Errorf("without any program: got %v, error %v, want 8 images and %v that names ABL_GATEWAY",
			all, err, ErrHelper)
	}
}

// The archive that ABL_IMAGES names is loaded once, if an image is missing that needs a network, by the
// first of several processes.
func TestArchiveOfTheEnvironment(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	from := newFake()
	m := testMaker(t, from)
	if _, err := m.Ensure(t.Context(), Want{Agent: "gemini"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "images.tar")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	e := newFake()
	e.digest = "" // there is no registry
	loads := 0
	e.load = func() {
		loads++
		maps.Copy(e.images, from.images)
	}
	maker := func(e *fakeEngine, path string) *Maker {
		m := testMaker(t, e)
		env := m.Env
		m.Env = func(name string) string {
			if name == ArchiveVar {
				return path
			}
			return env(name)
		}
		return m
	}
	var wait sync.WaitGroup
	for range 3 {
		m := maker(e, path)
		wait.Go(func() {
			for range 2 {
				if _, err := m.Ensure(t.Context(), Want{Agent: "gemini"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if loads != 1 {
		t.Errorf("loads of the archive: got %d, want 1", loads)
	}
	loads, e = 0, newFake()
	e.load = func() { loads++; e.images["abl/base:other"] = maps.Clone(from.images["abl/base:other"]) }
	m = maker(e, path)
	for range 2 {
		_, _ = m.Ensure(t.Context(), Want{Agent: "gemini"})
	}
	if loads != 1 {
		t.Errorf("loads of an archive that lacks the image: got %d, want 1", loads)
	}
	if _, err := maker(newFake(), path+".none").Ensure(t.Context(), Want{Agent: Tools}); !errors.Is(err, ErrArchive) {
		t.Errorf("an archive that does not exist: got %v, want %v", err, ErrArchive)
	}
}
