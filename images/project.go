package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// ErrDockerfile says that a project's own Dockerfile or its folder cannot be used.
var ErrDockerfile = errors.New("the project's Dockerfile cannot be used")

const (
	dockerfileName = "Dockerfile" // what the engine reads in every context of abl's
	maxDockerfile  = 1 << 20      // bytes
)

// checkDockerfile wants a Dockerfile that extends abl's image: it begins with
// ARG ABL_IMAGE and FROM ${ABL_IMAGE}, and its last stage stands on that image,
// straight or through earlier stages.
func checkDockerfile(text string) error {
	own := map[string]bool{"$ABL_IMAGE": true, "${ABL_IMAGE}": true}
	n, stands := 0, false
	for _, in := range instructions(text) {
		n++
		switch {
		case n == 1 && !(in.word == "ARG" && len(in.args) == 1 && in.args[0] == "ABL_IMAGE"):
			return fmt.Errorf("line %d: want \"ARG ABL_IMAGE\" as the first instruction", in.line)
		case n == 2 && !(in.word == "FROM" && len(in.args) > 0 && own[in.args[0]]):
			return fmt.Errorf("line %d: want \"FROM ${ABL_IMAGE}\" as the second instruction", in.line)
		case in.word == "FROM":
			stands = len(in.args) > 0 && (own[in.args[0]] || own[strings.ToLower(in.args[0])])
			if len(in.args) == 3 && strings.EqualFold(in.args[1], "AS") {
				own[strings.ToLower(in.args[2])] = stands
			}
		}
	}
	switch {
	case strings.HasSuffix(strings.TrimSpace(text), `\`):
		return errors.New("its last line is continued by nothing")
	case n < 2:
		return errors.New("line 1: want \"ARG ABL_IMAGE\" and \"FROM ${ABL_IMAGE}\"")
	case !stands:
		return errors.New("its last stage does not stand on ${ABL_IMAGE}, so that the agent would be missing")
	}
	return nil
}

// instruction is one of a Dockerfile, continued lines joined.
type instruction struct {
	line int // where it begins, from 1
	word string
	args []string
}

func instructions(text string) []instruction {
	var all []instruction
	var words []string
	begun := 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if begun == 0 {
			begun = i + 1
		}
		part, more := strings.CutSuffix(line, `\`)
		words = append(words, strings.Fields(part)...)
		if more {
			continue
		}
		all = appendInstruction(all, begun, words)
		words, begun = nil, 0
	}
	return appendInstruction(all, begun, words)
}

func appendInstruction(all []instruction, line int, words []string) []instruction {
	if len(words) == 0 {
		return all
	}
	return append(all, instruction{line: line, word: strings.ToUpper(words[0]), args: words[1:]})
}

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
