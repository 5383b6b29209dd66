package images

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"abl/internal/helper"
)

// ErrHelper says that a program of abl's own that runs in a box is missing or cannot run there.
var ErrHelper = errors.New("a program of abl's own cannot be used")

// variables may each name a program of abl's own that goes into images.
var variables = map[string]string{helper.HelperCmd: "ABL_HELPER", helper.Gateway: "ABL_GATEWAY"}

// find gives a program's path: in the environment, beside this program, where a release has
// one for each architecture. An installed program may be a link.
func (m *Maker) find(name, arch string) (string, error) {
	path := m.Env(variables[name])
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("%w: cannot find the folder of the running program: %w", ErrHelper, err)
		}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		path = filepath.Join(filepath.Dir(self), name+"-linux-"+arch)
		if _, err := os.Lstat(path); err != nil {
			path = filepath.Join(filepath.Dir(self), name)
		}
	}
	return path, nil
}

// read reads a program as a member of a build context, checked for the engine's architecture.
func (m *Maker) read(name, arch string) (entry, error) {
	path, err := m.find(name, arch)
	if err != nil {
		return entry{}, err
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entry{}, fmt.Errorf("%w: no file %q: unpack the whole release, build it with `make build`, or name it with %s",
			ErrHelper, path, variables[name])
	case err != nil:
		return entry{}, fmt.Errorf("%w: %w", ErrHelper, err)
	}
	if err := checkStatic(data, arch); err != nil {
		return entry{}, fmt.Errorf("%w: %q %w", ErrHelper, path, err)
	}
	return bytesEntry("root/abl/bin/"+name, 0o755, data), nil
}

// checkStatic wants an ELF program for arch that needs no loader: the holder's
// image has none, and an agent's may have another C library.
func checkStatic(program []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("is no Linux program: %w", err)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	if f.Machine != machine {
		return fmt.Errorf("is for %v, but the engine is %s: build it with GOARCH=%s", f.Machine, arch, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("is linked dynamically: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// files is what an image of a program of abl's holds: the program under all its names.
func (e entry) files(context string, names ...string) []entry {
	files := append(embedded(context), dirEntry("root", 0o755), dirEntry("root/abl", 0o755),
		dirEntry("root/abl/bin", 0o755), e)
	for _, name := range names {
		files = append(files, linkEntry("root/abl/bin/"+name, helper.HelperCmd))
	}
	return files
}

// helperNames are those under which the helper is started in addition to its own.
var helperNames = []string{
	helper.HelperRun, helper.HelperAgent, helper.HelperACP, helper.HelperBroker, helper.HelperHolder, helper.HelperProbe, helper.HelperKill,
}

// runPrefix begins the name of an image with the helper on top.
const runPrefix = "run-"

// runRecipe puts the helper on top of an image, with the places where mounts go.
func runRecipe(below recipe, file entry) recipe {
	files := file.files("run", helperNames...)
	places := []string{"abl/in", "abl/out", "abl/empty", "abl/user", "workspace", "home", "home/agent", "usr", "usr/local",
		"usr/local/bin"}
	for _, d := range places {
		files = append(files, dirEntry("root/"+d, 0o755))
	}
	files = append(files, linkEntry("root/usr/local/bin/"+helper.HelperCmd, helper.Bin+"/"+helper.HelperCmd))
	return recipe{name: runPrefix + below.name, parent: below.ref, files: files}
}

// holderRecipe is the helper, the place of a door, in which each of abl's users may make
// sockets, and the place of a record.
func holderRecipe(file entry) recipe {
	files := append(file.files(holderImage, helperNames...),
		dirEntry("root/abl/in", 0o755), dirEntry("root/abl/out", 0o755), dirEntry("root"+helper.Door, 0o777))
	return recipe{name: holderImage, files: files}
}

// gatewayRecipe is the gateway's program and nothing else: no shell, no
// certificates, no file of a system.
func gatewayRecipe(file entry) recipe {
	return recipe{name: gatewayImage, files: file.files(gatewayImage)}
}
