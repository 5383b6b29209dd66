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

// ErrHelper means that abl-cmd or abl-gateway is missing or cannot run in a container.
var ErrHelper = errors.New("cannot use abl-cmd or abl-gateway")

// variables are the environment variables that name abl's programs for images.
var variables = map[string]string{helper.HelperCmd: "ABL_HELPER", helper.Gateway: "ABL_GATEWAY"}

// find returns a program's path: from the environment, or next to this program, where a release has
// a file per architecture.
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

// read returns a program as an entry of a build context. It fails if the engine cannot run it.
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

// checkStatic fails unless program is a static ELF program for arch. The holder's image has no
// loader, and an agent's image may have another C library.
func checkStatic(program []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("is not a Linux program: %w", err)
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

// files returns the build context of an image with a program of abl, under all its names.
func (e entry) files(context string, names ...string) []entry {
	files := append(embedded(context), dirEntry("root", 0o755), dirEntry("root/abl", 0o755),
		dirEntry("root/abl/bin", 0o755), e)
	for _, name := range names {
		files = append(files, linkEntry("root/abl/bin/"+name, helper.HelperCmd))
	}
	return files
}

// helperNames are other names of the helper.
var helperNames = []string{
	helper.HelperRun, helper.HelperAgent, helper.HelperACP, helper.HelperBroker, helper.HelperHolder,
	helper.HelperProbe, helper.HelperKill,
}

// runPrefix begins the name of an image with the helper on top.
const runPrefix = "run-"

// runRecipe returns the recipe for the helper and the mount points on top of an image.
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

// holderRecipe returns the recipe for the helper with the folder of the proxy sockets, which every
// user can write, and the folder of records.
func holderRecipe(file entry) recipe {
	files := append(file.files(holderImage, helperNames...),
		dirEntry("root/abl/in", 0o755), dirEntry("root/abl/out", 0o755), dirEntry("root"+helper.Sockets, 0o777))
	return recipe{name: holderImage, files: files}
}

// gatewayRecipe returns the recipe of an image that contains only the gateway's program.
func gatewayRecipe(file entry) recipe {
	return recipe{name: gatewayImage, files: file.files(gatewayImage)}
}
