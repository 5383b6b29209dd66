package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
	"abl/orchestrator/workspace/ignore"
)

// ignored decides as git does, by the .gitignore files from the top of the
// repository down to a path's own folder, by info/exclude, and by the person's own
// excludes. Whether a file
// is tracked makes no difference: what is ignored is not a model's business.
type ignored struct {
	top, prefix string                   // the project is top/prefix; prefix ends with a slash or is ""
	rules       map[string]*ignore.Rules // by folder below top, with a slash at the end; "" is top
}

func newIgnored(root string, excludes *ignore.Rules) (*ignored, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	g := &ignored{top: top(root), rules: map[string]*ignore.Rules{}}
	if rel, err := filepath.Rel(g.top, root); err == nil && rel != "." {
		g.prefix = filepath.ToSlash(rel) + "/"
	}
	first, err := read(g.top, ".gitignore")
	g.rules[""] = excludes.Below("", first)
	return g, err
}

// top is the folder of the repository that a folder is in; itself without one.
func top(root string) string {
	for dir := root; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return root
		}
	}
}

// read is a file of rules. Git follows no link to one.
func read(dir, name string) ([]byte, error) {
	data, err := hostfs.Read(dir, name, maxRules)
	if errors.Is(err, hostfs.ErrAbsent) || errors.Is(err, hostfs.ErrNotRegular) {
		return nil, nil
	}
	return data, err
}

// in are the rules in force in a folder.
func (g *ignored) in(folder string) *ignore.Rules {
	if r, ok := g.rules[folder]; ok {
		return r
	}
	above := folder[:strings.LastIndexByte(folder[:len(folder)-1], '/')+1]
	data, err := read(g.top, folder+".gitignore")
	if err != nil {
		data = []byte("*") // what cannot be read forbids
	}
	r := g.in(above).Below(folder, data)
	g.rules[folder] = r
	return r
}

// match says whether git ignores the file name, or a folder on its way.
func (g *ignored) match(name string) bool { return g.walk(g.prefix+name, false) }

func (g *ignored) matchDir(name string) bool { return g.walk(g.prefix+name, true) }

func (g *ignored) walk(name string, dir bool) bool {
	folder := ""
	for i := range len(name) {
		if name[i] == '/' {
			if g.in(folder).Ignored(name[:i], true) {
				return true
			}
			folder = name[:i+1]
		}
	}
	return g.in(folder).Ignored(name, dir)
}
