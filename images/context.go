package images

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	ablDir  = ".abl"
	envFile = ".env"
)

// CheckContext refuses a Dockerfile whose folder, which the engine gets whole, holds
// or lies in what agents write (written), what abl keeps, or .env: a build runs as
// root on a network. Contexts may lie in .abl/images.
func CheckContext(root, dockerfile string, written ...string) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(dockerfile))
	if err != nil {
		return nil // who reads it says what is wrong
	}
	k := newKept(root, written)
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("cannot build an image from %q: %s", k.rel(dockerfile), fmt.Sprintf(format, args...))
	}
	if real, err := filepath.EvalSymlinks(dockerfile); err == nil && k.over(real) != "" {
		return refuse("it lies in %q", k.rel(k.over(real)))
	}
	if place := k.over(folder); place != "" {
		return refuse("its folder lies in %q", k.rel(place))
	}
	return walk(folder, func(path, name string, d fs.DirEntry) error {
		if d.Type() == fs.ModeSymlink {
			if place := k.meets(path); place != "" {
				return refuse("its folder, which the engine gets whole, holds %q, a link into %q", k.rel(path), k.rel(place))
			}
			return nil
		}
		if k.is(path, d) {
			return refuse("its folder, which the engine gets whole, holds %q", k.rel(path))
		}
		return nil
	})
}

// kept are the places, without a link in them, of which nothing goes to the engine.
type kept struct {
	root   string
	images string // the folder of abl's in which contexts may lie
	places []string
	infos  []fs.FileInfo
}

func newKept(root string, written []string) kept {
	k := kept{root: root, images: filepath.Join(root, ablDir, "images")}
	for _, path := range append(slices.Clone(written), filepath.Join(root, ablDir), filepath.Join(root, envFile)) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // it is not there
		}
		if info, err := os.Stat(real); err == nil {
			k.places, k.infos = append(k.places, real), append(k.infos, info)
		}
	}
	return k
}

// over is the place that a path is or lies in, "" for none.
func (k kept) over(path string) string {
	for _, place := range k.places {
		if below(path, place) && !(place == filepath.Dir(k.images) && below(path, k.images)) {
			return place
		}
	}
	return ""
}

// meets is the place that a link leads into, or that lies in what it leads to.
func (k kept) meets(link string) string {
	to, err := filepath.EvalSymlinks(link)
	if err != nil {
		return "" // it leads nowhere
	}
	if place := k.over(to); place != "" {
		return place
	}
	for _, place := range k.places {
		if below(place, to) && place != to {
			return place
		}
	}
	return ""
}

// is tells one of the places, what lies in one, and another project's.
func (k kept) is(path string, d fs.DirEntry) bool {
	if d.Name() == ablDir || d.Name() == envFile || k.over(path) != "" {
		return true
	}
	info, err := d.Info()
	return err == nil && slices.ContainsFunc(k.infos, func(place fs.FileInfo) bool { return os.SameFile(place, info) })
}

func (k kept) rel(path string) string {
	if short, err := filepath.Rel(k.root, path); err == nil {
		return short
	}
	return path
}

func below(path, place string) bool {
	return path == place || strings.HasPrefix(path, strings.TrimSuffix(place, "/")+"/")
}
