package images

import (
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

// program is one of abl's own that goes into images: its file's name, the one
// that a person gave, and the variable that may name one.
type program struct{ name, given, variable string }

func (m *Maker) helperProgram() program {
	return program{name: helper.HelperCmd, given: m.Helper, variable: "ABL_HELPER"}
}

func (m *Maker) gatewayProgram() program {
	return program{name: helper.Gateway, given: m.Sidecar, variable: "ABL_GATEWAY"}
}

// find gives a program's path: named, in the environment, beside this program.
func (m *Maker) find(p program) (string, error) {
	if p.given != "" {
		return p.given, nil
	}
	if path := m.env(p.variable); path != "" {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w: cannot find the folder of the running program: %w", ErrHelper, err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return filepath.Join(filepath.Dir(self), p.name), nil
}

// helper reads the helper as a member of a build context.
func (m *Maker) helper(arch string) (entry, error) { return m.read(m.helperProgram(), arch) }

// read reads a program as a member of a build context, checked for the engine's architecture.
func (m *Maker) read(p program, arch string) (entry, error) {
	path, err := m.find(p)
	if err != nil {
		return entry{}, err
	}
	// An installed program may be a link, and a person may name one.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	e, err := fileEntry("root/abl/bin/"+p.name, path)
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, fmt.Errorf("%w: no file %q: build it with `make build`, or name it with %s", ErrHelper, path, p.variable)
	}
	if err != nil {
		return entry{}, fmt.Errorf("%w: cannot read %q: %w", ErrHelper, path, err)
	}
	if err := checkStatic(path, arch); err != nil {
		return entry{}, fmt.Errorf("%w: %q %w", ErrHelper, path, err)
	}
	e.mode = 0o755
	return e, nil
}

// checkStatic wants an ELF program for arch that needs no loader: the holder's
// image has none, and an agent's may have another C library.
func checkStatic(path, arch string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("is no Linux program: %w", err)
	}
	defer f.Close()
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

// helperLayer is what the helper's layer adds: the program, its names, the
// mount points, and the two folders that an empty engine volume is filled
// with on its first mount, so that any uid may write an overlay into it.
func helperLayer(file entry) []entry {
	files := []entry{
		dirEntry("root", 0o755), dirEntry("root/abl", 0o755), dirEntry("root/abl/bin", 0o755), file,
		dirEntry("root/abl/scratch", 0o755), dirEntry("root/abl/scratch/u", 0o777), dirEntry("root/abl/scratch/w", 0o777),
	}
	for _, name := range []string{helper.HelperRun, helper.HelperAgent, helper.HelperBroker, helper.HelperHolder, helper.HelperProbe, helper.HelperNull} {
		files = append(files, linkEntry("root/abl/bin/"+name, helper.HelperCmd))
	}
	return files
}

// runPrefix begins the name of an image with the helper on top.
const runPrefix = "run-"

// runRecipe puts the helper on top of an image.
func runRecipe(below recipe, file entry) (recipe, error) {
	files, err := embedded("run")
	if err != nil {
		return recipe{}, err
	}
	files = append(files, helperLayer(file)...)
	for _, d := range []string{"abl/in", "abl/out", "abl/empty", "workspace", "home", "home/agent", "usr", "usr/local", "usr/local/bin"} {
		files = append(files, dirEntry("root/"+d, 0o755))
	}
	files = append(files, linkEntry("root/usr/local/bin/"+helper.HelperCmd, helper.Bin+"/"+helper.HelperCmd))
	return recipe{name: runPrefix + below.name, parent: below.ref, files: files}, nil
}

// holderRecipe is the helper and nothing else.
func holderRecipe(file entry) (recipe, error) {
	files, err := embedded(holderImage)
	return recipe{name: holderImage, files: append(files, helperLayer(file)...)}, err
}

// gatewayRecipe is the gateway's program and nothing else: no shell, no
// certificates, no file of a system.
func gatewayRecipe(gateway entry) (recipe, error) {
	files, err := embedded(gatewayImage)
	files = append(files, dirEntry("root", 0o755), dirEntry("root/abl", 0o755), dirEntry("root/abl/bin", 0o755), gateway)
	return recipe{name: gatewayImage, files: files}, err
}
