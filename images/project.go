package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

const (
	maxContext = 200 << 20 // bytes of a project's build context
	maxFiles   = 20000
)

// projectRecipe reads a project's own Dockerfile and the folder it stands in.
func projectRecipe(path, parent string) (recipe, error) {
	text, err := readSmall(path)
	if err == nil {
		err = checkDockerfile(text)
	}
	if err != nil {
		return recipe{}, fmt.Errorf("%w: %q: %w", ErrDockerfile, path, err)
	}
	files, err := folder(filepath.Dir(path))
	if err != nil {
		return recipe{}, fmt.Errorf("%w: cannot read the folder %q: %w", ErrDockerfile, filepath.Dir(path), err)
	}
	files = append(files, bytesEntry(dockerfileName, 0o644, []byte(text)))
	return recipe{name: projectImage, parent: parent, network: true, files: files}, nil
}

// readSmall reads a Dockerfile or a .dockerignore.
func readSmall(path string) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDockerfile+1))
	if err == nil && len(text) > maxDockerfile {
		err = fmt.Errorf("larger than %d bytes", maxDockerfile)
	}
	return string(text), err
}

// folder gives what stands in a folder as a build context. Links stay links,
// what is neither file, folder nor link is left out, and so are Dockerfiles:
// the Builder's would otherwise be rebuilt when the Verifier's changes.
func folder(root string) ([]entry, error) {
	var files []entry
	var total int64
	err := walk(root, func(path, name string, d fs.DirEntry) error {
		e, ok, err := found(path, name, d)
		if err != nil || !ok {
			return err
		}
		files, total = append(files, e), total+e.size
		if total > maxContext || len(files) > maxFiles {
			return fmt.Errorf("more than %d MB or %d files: name what is not needed in .dockerignore, or move the Dockerfile to a folder of its own", maxContext>>20, maxFiles)
		}
		return nil
	})
	return files, err
}

// walk visits what stands in a folder but for what .dockerignore and isDockerfile
// leave out. It follows no link.
func walk(root string, visit func(path, name string, d fs.DirEntry) error) error {
	skip, err := readIgnore(filepath.Join(root, ".dockerignore"))
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		left, err := skip.MatchesOrParentMatches(name)
		if err != nil || left || isDockerfile(name) {
			return err
		}
		return visit(path, name, d)
	})
}

// readIgnore reads a .dockerignore; without one nothing is left out.
func readIgnore(name string) (*patternmatcher.PatternMatcher, error) {
	text, err := readSmall(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	rules, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	return rules, nil
}

func isDockerfile(name string) bool {
	return name == dockerfileName || strings.HasSuffix(name, "."+dockerfileName) || name == ".dockerignore"
}

func found(path, name string, d fs.DirEntry) (entry, bool, error) {
	switch {
	case d.IsDir():
		return dirEntry(name, 0o755), true, nil
	case d.Type() == fs.ModeSymlink:
		target, err := os.Readlink(path)
		return linkEntry(name, target), true, err
	case d.Type().IsRegular():
		info, err := d.Info()
		if err != nil {
			return entry{}, false, err
		}
		if info.Size() > maxContext {
			return entry{}, false, fmt.Errorf("%q is larger than %d MB", name, maxContext>>20)
		}
		e, err := fileEntry(name, path)
		return e, true, err
	}
	return entry{}, false, nil
}
