package images

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestHelperMustBeStatic(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		write(t, path, string(data))
		return path
	}
	good := file("good", staticELF("amd64", false))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, err string }{
		"static":     {good, ""},
		"link-to-it": {link, ""},
		"dynamic":    {file("dynamic", staticELF("amd64", true)), "CGO_ENABLED=0"},
		"other-arch": {file("arm", staticELF("arm64", false)), "GOARCH=amd64"},
		"script":     {file("script", []byte("#!/bin/sh\n")), "not a Linux program"},
		"missing":    {filepath.Join(dir, "away"), "make build"},
		"folder":     {dir, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Maker{Env: environ("ABL_HELPER", c.path)}).read("abl-cmd", "amd64")
			if c.err == "" && err != nil {
				t.Error(err)
			}
			if c.err != "" && (!errors.Is(err, ErrHelper) || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
		})
	}
}

func TestHelperIsFound(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := environ("ABL_HELPER", "/env/abl-cmd", "ABL_GATEWAY", "/env/abl-gateway")
	for dir, m := range map[string]*Maker{
		"/env":             {Env: env},
		filepath.Dir(self): {Env: environ()},
	} {
		for _, name := range []string{"abl-cmd", "abl-gateway"} {
			if got, err := m.find(name, "amd64"); err != nil || got != filepath.Join(dir, name) {
				t.Errorf("got %q, error %v, want %q in %q", got, err, name, dir)
			}
		}
	}
}

// A release has a program for each architecture, independent of the machine where it is unpacked.
func TestReleaseHelperMatchesTheEngine(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(filepath.Dir(self), "abl-cmd-linux-"+arch)
		write(t, path, string(staticELF(arch, false)))
		t.Cleanup(func() { os.Remove(path) })
	}
	for _, arch := range []string{"amd64", "arm64"} {
		file, err := (&Maker{Env: environ()}).read("abl-cmd", arch)
		if err != nil || string(file.data) != string(staticELF(arch, false)) || file.name != "root/abl/bin/abl-cmd" {
			t.Errorf("for %s: got %q of %d bytes, error %v, want abl-cmd-linux-%s as abl-cmd",
				arch, file.name, len(file.data), err, arch)
		}
	}
}

// The gateway's image contains one file. A role without a gateway does not need the gateway's
// program.
func TestGatewayImage(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	ref, err := m.Gateway(t.Context())
	if err != nil || names(e.built) != "gateway" {
		t.Fatalf("gateway image: got built images %q, error %v, want only gateway", e.built, err)
	}
	files := slices.Sorted(maps.Keys(e.contexts[ref]))
	if want := []string{
		"Dockerfile", "root/", "root/abl/", "root/abl/bin/", "root/abl/bin/abl-gateway",
	}; !slices.Equal(files, want) {
		t.Errorf("got files %q, want %q", files, want)
	}
	if again, err := m.Gateway(t.Context()); err != nil || again != ref || len(e.built) != 1 {
		t.Errorf("second time: got %s, error %v, built images %q, want %s and no new image", again, err, e.built, ref)
	}
	m.Env = also(m.Env, "ABL_GATEWAY", "/nowhere")
	if _, err := m.Gateway(t.Context()); !errors.Is(err, ErrHelper) || !strings.Contains(err.Error(), "ABL_GATEWAY") {
		t.Errorf("without the program: got error %v, want %v that names ABL_GATEWAY", err, ErrHelper)
	}
	if _, err := m.Ensure(t.Context(), Want{Agent: Tools}); err != nil {
		t.Errorf("a role's image without the gateway's program: got error %v, want none", err)
	}
}

func TestHelperLayer(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	ref, err := m.Ensure(t.Context(), Want{Agent: Tools})
	if err != nil {
		t.Fatal(err)
	}
	holder, err := m.Holder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{ref, holder} {
		files := e.contexts[image]
		for _, name := range []string{"abl-run", "abl-agent", "abl-broker", "abl-holder"} {
			if files["root/abl/bin/"+name] != "-> abl-cmd" {
				t.Errorf("%s in %s: got %q, want %q", name, image, files["root/abl/bin/"+name], "-> abl-cmd")
			}
		}
	}
	if e.contexts[ref]["root/usr/local/bin/abl-cmd"] != "-> /abl/bin/abl-cmd" {
		t.Errorf("abl-cmd on the PATH of %s: got %q, want %q",
			ref, e.contexts[ref]["root/usr/local/bin/abl-cmd"], "-> /abl/bin/abl-cmd")
	}
}
