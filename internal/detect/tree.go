package detect

import (
	"path"
	"slices"
	"strings"
)

// The bounds of what is read of a repository, which may be hostile.
const (
	maxFile    = 1 << 20   // bytes of one file
	maxSource  = 256 << 10 // bytes of one source file
	maxTotal   = 48 << 20
	maxSources = 2000
	// MaxPaths is how many paths of a repository a caller lists.
	MaxPaths = 50_000
)

// Tree is a bounded view of a repository: its paths, and a way to read one of them.
type Tree struct {
	paths map[string]bool
	all   []string // sorted
	read  func(name string, max int64) ([]byte, error)
	left  int64
	cache map[string]string
}

// New returns the tree of the regular files at paths, which read reads. read must follow no link
// and fail on files with more than max bytes.
func New(paths []string, read func(name string, max int64) ([]byte, error)) *Tree {
	t := &Tree{paths: map[string]bool{}, read: read, left: maxTotal, cache: map[string]string{}}
	for _, name := range paths[:min(len(paths), MaxPaths)] {
		if name = path.Clean(name); !t.paths[name] && !skipped(name) {
			t.paths[name] = true
			t.all = append(t.all, name)
		}
	}
	slices.Sort(t.all)
	return t
}

// skipped says whether a path is not the repository's own work.
func skipped(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "node_modules" || part == ".git" || part == ".abl" || part == ".venv" {
			return true
		}
	}
	return false
}

// Has says whether there is a file.
func (t *Tree) Has(name string) bool { return t.paths[path.Clean(name)] }

// Text returns the content of a file, "" if it is not there, too large, or not a regular file.
func (t *Tree) Text(name string) string { return t.text(name, maxFile) }

func (t *Tree) text(name string, max int64) string {
	name = path.Clean(name)
	text, known := t.cache[name]
	if known || !t.paths[name] || t.left <= 0 {
		return text
	}
	data, err := t.read(name, min(max, t.left))
	if err == nil {
		t.left -= int64(len(data))
		text = strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\ufeff")
	}
	t.cache[name] = text
	return text
}

// Below returns the paths below dir, "" for all, that keep accepts.
func (t *Tree) Below(dir string, keep func(name string) bool) (names []string) {
	for _, name := range t.all {
		if (dir == "" || strings.HasPrefix(name, dir+"/")) && keep(name) {
			names = append(names, name)
		}
	}
	return names
}

// AllIn says whether all sources in a language that Read recognizes are in a folder.
func (t *Tree) AllIn(dir string) bool {
	return !slices.ContainsFunc(t.all, func(name string) bool {
		if strings.HasPrefix(name, dir+"/") || strings.Contains(path.Base(name), ".config.") {
			return false
		}
		for _, all := range endings {
			if slices.Contains(all, path.Ext(name)) {
				return true
			}
		}
		return false
	})
}

// at is a path in the folder that is worked in.
func (p *project) at(name string) string { return path.Join(p.dir, name) }

// has says whether that folder has a file.
func (p *project) has(name string) bool { return p.tree.Has(p.at(name)) }

// text returns the content of a file in that folder.
func (p *project) text(name string) string { return p.tree.Text(p.at(name)) }

// first returns the first of the files that the folder has.
func (p *project) first(names ...string) string {
	for _, name := range names {
		if p.has(name) {
			return name
		}
	}
	return ""
}

// nearest returns the first of the files that the folder or one above it has, as a path in the tree.
func (p *project) nearest(names ...string) string {
	for dir := p.dir; ; dir = path.Dir(dir) {
		for _, name := range names {
			if at := path.Join(dir, name); p.tree.Has(at) {
				return at
			}
		}
		if dir == "" || dir == "." {
			return ""
		}
	}
}

// hasFolder says whether the folder has files below name.
func (p *project) hasFolder(name string) bool {
	prefix := p.at(name) + "/"
	i, _ := slices.BinarySearch(p.tree.all, prefix)
	return i < len(p.tree.all) && strings.HasPrefix(p.tree.all[i], prefix)
}

// src is a Source in the folder that is worked in.
func (p *project) src(file, place string) Source { return Source{File: p.at(file), Place: place} }

// sources returns the files with one of the endings that are no tests, examples or other people's.
func (p *project) sources(endings ...string) []string {
	nested := p.nested(endings[0])
	all := p.tree.Below(p.dir, func(name string) bool {
		if !slices.Contains(endings, path.Ext(name)) || isTest(path.Base(name)) {
			return false
		}
		inner := strings.Trim(strings.TrimPrefix(path.Dir(name), p.dir), "/")
		for at := inner; at != "." && at != ""; at = path.Dir(at) {
			if aside(path.Base(at)) || nested[at] {
				return false
			}
		}
		return true
	})
	return all[:min(len(all), maxSources)]
}

// nested returns the folders below that are projects of their own, in the language of an ending.
func (p *project) nested(ending string) map[string]bool {
	marks := map[string][]string{
		".py": {"pyproject.toml",
			"setup.py"}, ".go": {"go.mod"}, ".rs": {"Cargo.toml"}, ".js": {"package.json"}, ".rb": {"Gemfile"},
	}[ending]
	all := map[string]bool{}
	for _, name := range p.tree.Below(p.dir, func(name string) bool { return slices.Contains(marks, path.Base(name)) }) {
		all[strings.Trim(strings.TrimPrefix(path.Dir(name), p.dir), "/")] = true
	}
	delete(all, "")
	delete(all, ".")
	return all
}

// aside says whether a folder holds no part of the app itself.
func aside(part string) bool {
	return strings.HasPrefix(part, ".") && part != "." || strings.HasPrefix(part, "_") || slices.Contains([]string{
		"vendor", "test", "tests", "__tests__", "testdata", "testing", "examples", "example", "docs", "doc", "dist",
		"build", "target", "e2e",
		"spec", "specs", "fixtures", "third_party", "migrations", "benchmark", "benchmarks", "benches", "bench", "scripts",
		"extra", "extras",
		"contrib", "hack", "tools", "profiling", "samples", "cypress", "fuzz", "playground",
	}, part)
}

func isTest(base string) bool {
	stem := strings.TrimSuffix(base, path.Ext(base))
	return strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec") ||
		strings.HasPrefix(stem, "test_") || strings.HasSuffix(stem, ".d") || stem == "conftest"
}

// ignores says whether a .gitignore names a folder. It knows the plain forms only, which nearly all
// repositories use.
func (t *Tree) ignores(dir, folder string) bool {
	for at := dir; ; at = path.Dir(at) {
		for line := range strings.Lines(t.Text(path.Join(at, ".gitignore"))) {
			line = strings.TrimSpace(line)
			line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(line, "*"), "/"), "**/"), "/")
			if line == folder || line == path.Join(dir, folder) {
				return true
			}
		}
		if at == "" || at == "." {
			return false
		}
	}
}
