package guard

import (
	"strings"

	"abl/internal/hostfs"
	"abl/orchestrator/workspace/ignore"
)

// List is what is protected, in words, one entry each.
func (g *Guard) List() []string {
	var all []string
	for _, e := range g.fixed {
		all = append(all, e.words)
	}
	if g.git != nil {
		all = append(all, "anything that git ignores (.gitignore and other excludes)")
	}
	if g.lifted == nil {
		return all
	}
	var names []string
	for _, name := range locks() {
		if g.lifted.Ignored(strings.ToLower(name), false) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		all = append(all, "in any folder: "+strings.Join(names, ", "))
	}
	for l := range strings.SplitSeq(string(g.list), "\n") {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' && l[0] != '!' {
			all = append(all, "anything that matches "+l)
		}
	}
	return all
}

// Ignored says whether git leaves a path out.
func (g *Guard) Ignored(name string, dir bool) bool {
	return g.git != nil && (g.git.match(name) || dir && g.git.matchDir(name))
}

// IgnoredIn is Guard.Ignored for a folder that a role has written, where the
// person's git is asked nothing: its .gitignore files and info/exclude decide.
func IgnoredIn(root string) (func(name string, dir bool) bool, error) {
	data, err := hostfs.Read(root, ".git/info/exclude", maxRules)
	if err != nil {
		data = nil // there need not be any
	}
	git, err := newIgnored(root, ignore.Exclude(data))
	if err != nil {
		return nil, err
	}
	return (&Guard{git: git}).Ignored, nil
}
