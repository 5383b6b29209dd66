package codecommit

import "strings"

// List is what is protected, in words, one entry each.
func (g *PathGuard) List() []string {
	var all []string
	for _, e := range g.fixed {
		all = append(all, e.words)
	}
	if g.git {
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
