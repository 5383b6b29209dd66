package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

const (
	maxContext = 200 << 20 // bytes of a project's build context
	maxFiles   = 20000
)

// projectRecipe returns the recipe of a project's Dockerfile and its folder.
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
	text, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxDockerfile)
	return string(text), err
}

// folder returns the files, folders and links of a folder as a build context. It omits Dockerfiles:
// otherwise a change of the Verifier's would rebuild the Builder's image.
func folder(root string) (files []entry, err error) {
	var total int64
	err = walk(root, func(path, name string, d fs.DirEntry) error {
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := dirEntry(name, 0o755)
		switch {
		case d.Type() == fs.ModeSymlink:
			e = linkEntry(name, "")
			e.link, err = os.Readlink(path)
		case d.Type().IsRegular():
			var data []byte
			if total += info.Size(); total <= maxContext {
				data, err = hostfs.Read(root, name, maxContext)
			}
			e = bytesEntry(name, 0o644, data)
			if info.Mode()&0o111 != 0 {
				e.mode = 0o755
			}
		case !d.IsDir():
			return nil
		}
		if files = append(files, e); total > maxContext || len(files) > maxFiles {
			return fmt.Errorf("more than %d MB or %d files: exclude unneeded files in .dockerignore, "+
				"or move the Dockerfile to a separate folder", maxContext>>20, maxFiles)
		}
		return err
	})
	return files, err
}

// walk calls visit for the entries of a folder, except those that .dockerignore or isDockerfile
// exclude. It follows no link.
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

// readIgnore reads a .dockerignore. If the file does not exist, no path matches.
func readIgnore(name string) (*patternmatcher.PatternMatcher, error) {
	text, err := readSmall(name)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(strings.NewReader(text))
	rules, rerr := patternmatcher.New(patterns)
	if err = errors.Join(err, rerr); err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	return rules, nil
}

func isDockerfile(name string) bool {
	return name == dockerfileName || strings.HasSuffix(name, "."+dockerfileName) || name == ".dockerignore"
}

// ErrDockerfile means that a project's Dockerfile or its folder cannot be used.
var ErrDockerfile = errors.New("cannot use the project's Dockerfile")

const (
	dockerfileName = "Dockerfile" // in every build context
	maxDockerfile  = 1 << 20      // bytes
)

// checkDockerfile fails unless a Dockerfile extends abl's image: it begins with ARG ABL_IMAGE and
// FROM ${ABL_IMAGE}, and its last stage is based on that image, directly or through earlier stages.
func checkDockerfile(text string) error {
	all := instructions(text)
	own := map[string]bool{"$ABL_IMAGE": true, "${ABL_IMAGE}": true}
	begins := len(all) > 1 && strings.Join(all[0], " ") == "ARG ABL_IMAGE"
	if !begins || len(all[1]) < 2 || all[1][0] != "FROM" || !own[all[1][1]] {
		return errors.New("want \"ARG ABL_IMAGE\" and \"FROM ${ABL_IMAGE}\" as the first instructions")
	}
	based := false
	for _, words := range all {
		if words[0] != "FROM" {
			continue
		}
		based = len(words) > 1 && (own[words[1]] || own[strings.ToLower(words[1])])
		if len(words) == 4 && strings.EqualFold(words[2], "AS") {
			own[strings.ToLower(words[3])] = based
		}
	}
	switch {
	case strings.HasSuffix(strings.TrimSpace(text), `\`):
		return errors.New("its last line ends with a backslash")
	case !based:
		return errors.New("its last stage is not based on ${ABL_IMAGE}, so the agent would be missing")
	}
	return nil
}

// caFile is the name of the file with certificates in a project's build context and, in /etc/ssl,
// in its image.
const caFile = "abl-ca.crt"

// trusting returns a Dockerfile in which the stages on abl's image trust the certificates in caFile
// while they are built. Containers do not: an ARG is a variable of the build only.
func trusting(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(line)
		words := strings.Fields(line)
		if len(words) < 2 || !strings.EqualFold(words[0], "FROM") || strings.Trim(words[1], "${}") != "ABL_IMAGE" ||
			words[len(words)-1] == `\` {
			continue
		}
		fmt.Fprintf(&out, "\nCOPY %s /etc/ssl/\n", caFile)
		for _, name := range CertVariables {
			fmt.Fprintf(&out, "ARG %s=/etc/ssl/%s\n", name, caFile)
		}
	}
	return out.String()
}

// instructions returns the words of each line of a Dockerfile. It treats a continuation line as a
// separate instruction, because callers look only for instructions on one line.
func instructions(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' {
			words[0] = strings.ToUpper(words[0])
			all = append(all, words)
		}
	}
	return all
}

const (
	ablDir  = ".abl"
	envFile = ".env"
)

// CheckContext refuses a Dockerfile whose folder contains or is in a folder that agents write
// (written), .abl or .env. The engine gets the whole folder, and a build runs as root on a network.
// Folders in .abl/images are allowed.
func CheckContext(root, dockerfile string, written ...string) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(dockerfile))
	if err != nil {
		return nil // projectRecipe reports this error
	}
	rel := func(path string) string {
		short, err := filepath.Rel(root, path)
		if err != nil {
			return path
		}
		return short
	}
	k := newKept(root, written)
	file, _ := filepath.EvalSymlinks(dockerfile)
	for _, path := range []string{file, folder} {
		if place := k.over(path); place != "" {
			return fmt.Errorf("cannot build an image from %q: it is in %q", rel(dockerfile), rel(place))
		}
	}
	return walk(folder, func(path, _ string, d fs.DirEntry) error {
		if k.is(path, d) {
			return fmt.Errorf("cannot build an image from %q: the engine would get its whole folder, which contains %q",
				rel(dockerfile), rel(path))
		}
		return nil
	})
}

// kept are the paths, without links, that the engine must not get.
type kept struct {
	own    string // abl's folder
	places map[string]fs.FileInfo
}

// newKept returns the places that no build context may contain: abl's own folder, .env and the
// written directories.
func newKept(root string, written []string) kept {
	k := kept{own: filepath.Join(root, ablDir), places: map[string]fs.FileInfo{}}
	for _, path := range append(slices.Clone(written), k.own, filepath.Join(root, envFile)) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // does not exist
		}
		if info, err := os.Stat(real); err == nil {
			k.places[real] = info
		}
	}
	return k
}

// over returns the place that is or contains a path, "" if there is no such place.
func (k kept) over(path string) string {
	for place := range k.places {
		if below(path, place) && !(place == k.own && below(path, filepath.Join(k.own, "images"))) {
			return place
		}
	}
	return ""
}

// is reports whether a path is one of the places, is in one, is a link into or above one, or is
// .abl or .env of another project.
func (k kept) is(path string, d fs.DirEntry) bool {
	if d.Type() == fs.ModeSymlink {
		to, err := filepath.EvalSymlinks(path)
		for place := range k.places {
			if err == nil && (k.over(to) != "" || below(place, to)) {
				return true
			}
		}
		return false
	}
	info, err := d.Info()
	for _, place := range k.places {
		if err == nil && os.SameFile(place, info) {
			return true
		}
	}
	return d.Name() == ablDir || d.Name() == envFile || k.over(path) != ""
}

func below(path, place string) bool {
	rel, err := filepath.Rel(place, path)
	return err == nil && filepath.IsLocal(rel)
}
