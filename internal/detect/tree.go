package detect

import (
	"encoding/json"
	"encoding/xml"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"abl/internal/wording"
)

// The bounds of reading a repository, which may be hostile.
const (
	maxFile    = 1 << 20   // bytes of one file
	maxSource  = 256 << 10 // bytes of one source file
	maxTotal   = 48 << 20
	maxSources = 2000
	// MaxPaths is the number of paths of a repository that a caller lists.
	MaxPaths = 50_000
)

// Tree is a bounded view of a repository: its paths, and a function that reads one of them.
type Tree struct {
	paths map[string]bool
	all   []string // sorted
	read  func(name string, max int64) ([]byte, error)
	left  int64
	cache map[string]string
}

// New returns the tree of the regular files at paths. read returns the content of one of them. It
// must not follow links, and must fail if a file has more than max bytes.
func New(paths []string, read func(name string, max int64) ([]byte, error)) *Tree {
	t := &Tree{paths: map[string]bool{}, read: read, left: maxTotal, cache: map[string]string{}}
	for _, name := range paths[:min(len(paths), MaxPaths)] {
		if name = path.Clean(name); !t.paths[name] && !foreignFile(name) {
			t.paths[name] = true
			t.all = append(t.all, name)
		}
	}
	slices.Sort(t.all)
	return t
}

// foreignFile reports whether a path belongs to a tool and not to the repository's own work.
func foreignFile(name string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(part string) bool {
		return slices.Contains(fields("node_modules .git .abl .venv"), part)
	})
}

// Has reports whether a file exists.
func (t *Tree) Has(name string) bool { return t.paths[path.Clean(name)] }

// Text returns the content of a file, or "" if it does not exist, is too large, or cannot be read.
func (t *Tree) Text(name string) string { return t.text(name, maxFile) }

// text is Text with another size limit. It caches no failure: a later call may have a higher limit.
func (t *Tree) text(name string, max int64) string {
	name = path.Clean(name)
	text, known := t.cache[name]
	if known || !t.paths[name] || t.left <= 0 {
		return text
	}
	data, err := t.read(name, min(max, t.left))
	if err != nil {
		return ""
	}
	t.left -= int64(len(data))
	t.cache[name] = wording.Unix(string(data))
	return t.cache[name]
}

// Below returns the paths below dir, "" for the root, that keep accepts, all if it is nil.
func (t *Tree) Below(dir string, keep func(name string) bool) (names []string) {
	for _, name := range t.all {
		if (dir == "" || strings.HasPrefix(name, dir+"/")) && (keep == nil || keep(name)) {
			names = append(names, name)
		}
	}
	return names
}

// AllIn reports whether all sources are in a folder.
func (t *Tree) AllIn(dir string) bool {
	endings := otherEndings
	for _, s := range stacks {
		endings += " " + s.endings
	}
	all := fields(endings)
	return !slices.ContainsFunc(t.all, func(name string) bool {
		return !strings.HasPrefix(name, dir+"/") && !strings.Contains(path.Base(name), ".config.") &&
			slices.Contains(all, path.Ext(name))
	})
}

// otherEndings are the endings of sources in languages that Read does not recognize.
const otherEndings = ".c .h .cc .cpp .cxx .hpp .cs .fs .swift .m .ex .exs .erl .hs .ml .clj .dart .lua .pl .zig .nim .cr .d .r .jl"

// folder is the folder of a tree that Read looks at.
type folder struct {
	tree *Tree
	dir  string // "" for the root
}

// at returns the path in the tree of a path in the folder, inner the reverse.
func (f folder) at(name string) string    { return path.Join(f.dir, name) }
func (f folder) inner(name string) string { return strings.Trim(strings.TrimPrefix(name, f.dir), "/") }

// has reports whether the folder has a file.
func (f folder) has(name string) bool { return f.tree.Has(f.at(name)) }

// text returns the content of a file of the folder.
func (f folder) text(name string) string { return f.tree.Text(f.at(name)) }

// code returns the content of a source file, which is a path in the tree. Lines with only a comment are
// empty in it, and the tests at the end of a file in Rust are left out.
func (f folder) code(file string) string {
	text := f.tree.text(file, maxSource)
	switch path.Ext(file) {
	case ".py", ".rb":
		return compile(`(?m)^[ \t]*#.*$`).ReplaceAllString(text, "")
	case ".rs":
		text = compile(rustTests).ReplaceAllString(text, "\n")
	}
	return compile(lineComment).ReplaceAllString(text, "")
}

const rustTests = `(?s)\n#\[cfg\([^\n]*\btest\b[^\n]*\n(?:#\[[^\n]*\n)*mod \w+ \{.*`

// lineComment matches a line that is a comment, but not the build constraint of a file in Go.
const lineComment = `(?m)^[ \t]*(?:\* |//(?:[^g \n]| [^+\n]|$)).*$`

// src returns a Source in the folder.
func (f folder) src(file, place string) Source { return Source{File: f.at(file), Place: place} }

// first returns the first of the files, separated by blanks, that the folder has.
func (f folder) first(files string) string {
	for name := range strings.FieldsSeq(files) {
		if f.has(name) {
			return name
		}
	}
	return ""
}

// nearest returns the first of the files, separated by blanks, that the folder or the closest one
// above it has, as a path in the tree.
func (f folder) nearest(files string) string {
	for dir := f.dir; ; dir = path.Dir(dir) {
		if name := (folder{f.tree, dir}).first(files); name != "" {
			return path.Join(dir, name)
		}
		if dir == "" || dir == "." {
			return ""
		}
	}
}

// hasFolder reports whether the folder has files below name.
func (f folder) hasFolder(name string) bool {
	return len(f.tree.Below(f.at(name), nil)) > 0
}

// module returns the file of Node.js that a name without its extension refers to, "" if the folder
// does not have it.
func (f folder) module(name string) string {
	return f.first(path.Clean(name) + " " + name + ".js " + path.Join(name, "index.js"))
}

// hasModule reports whether the folder has a file of Node.js, which may be named without its ending.
func (f folder) hasModule(name string) bool { return f.module(name) != "" }

// count returns the number of files below the folder with one of the endings.
func (f folder) count(endings string) int {
	return len(f.tree.Below(f.dir, func(name string) bool { return slices.Contains(fields(endings), path.Ext(name)) }))
}

// sources returns the source files of a stack that are not tests, examples or third-party code.
func (f folder) sources(name string) []string {
	s, nested := stackOf(name), map[string]bool{} // projects within the project
	manifest, _, _ := strings.Cut(s.marks, " ")
	for _, file := range f.tree.Below(f.dir, func(name string) bool { return path.Base(name) == manifest }) {
		nested[path.Dir(f.inner(file))] = true
	}
	all := f.tree.Below(f.dir, func(name string) bool {
		if !slices.Contains(fields(s.endings), path.Ext(name)) || isTest(path.Base(name)) {
			return false
		}
		for dir := path.Dir(f.inner(name)); dir != "."; dir = path.Dir(dir) {
			if aside(path.Base(dir)) || nested[dir] {
				return false
			}
		}
		return true
	})
	return all[:min(len(all), maxSources)]
}

// aside reports whether a folder does not contain the app itself.
func aside(part string) bool {
	return strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") || slices.Contains(fields(
		"vendor test tests __tests__ testdata testing examples example docs doc dist build target e2e spec specs "+
			"fixtures third_party migrations benchmark benchmarks benches bench scripts extra extras contrib hack "+
			"tools profiling samples cypress fuzz playground"), part)
}

func isTest(base string) bool {
	stem := strings.TrimSuffix(base, path.Ext(base))
	return strings.HasPrefix(stem, "test_") || stem == "conftest" || slices.ContainsFunc(fields("_test .test .spec .d"),
		func(end string) bool { return strings.HasSuffix(stem, end) })
}

// creates records a folder that app.prepare or a build creates. The Builder's commits must not
// contain it.
func (p *project) creates(names string) {
	for name := range strings.FieldsSeq(names) {
		file := strings.Contains(name, ".") && !strings.HasPrefix(name, ".")
		if !file && !p.ignores(name) && !slices.Contains(p.report.Ignore, name+"/") {
			p.report.Ignore = append(p.report.Ignore, name+"/")
		}
	}
}

// ignores reports whether a .gitignore names a folder. It reads only the plain patterns, which
// nearly all repositories use.
func (f folder) ignores(name string) bool {
	for dir := f.dir; ; dir = path.Dir(dir) {
		for line := range strings.Lines(f.tree.Text(path.Join(dir, ".gitignore"))) {
			line = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(line), "*"), "/")
			line = strings.TrimPrefix(strings.TrimPrefix(line, "**/"), "/")
			if line == name || line == f.at(name) {
				return true
			}
		}
		if dir == "" || dir == "." {
			return false
		}
	}
}

// decode reads a JSON, XML or TOML file of the folder. It reports an error to the user.
func (p *project) decode(file string, into any) {
	data, err := []byte(p.text(file)), error(nil)
	switch path.Ext(file) {
	case ".json":
		err = json.Unmarshal(data, into)
	case ".xml":
		err = xml.Unmarshal(data, into)
	default:
		err = toml.Unmarshal(data, into)
	}
	if err != nil {
		p.say("%s cannot be read: %s", p.at(file), strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

// install records app.prepare with the hosts that it needs and the folders that it creates.
func (p *project) install(from Source, command, allow, folders string) {
	p.set("app.prepare", command, from)
	p.set("network.allow", allow, from)
	p.creates(folders)
}
