package codecommit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"
)

// ListFile is where a project adds to what is protected, and lifts what can be.
const ListFile = ConfigDir + "/protected"

// PathGuard knows what is protected in one project.
type PathGuard struct {
	root   string
	fixed  []entry
	lifted *ignore.Rules // lock files, and on top of them the project's list; nil of the protocol v1, which asks no git either
	list   []byte        // agent-config/protected
}

// Refused says which edits are not allowed, and by which rules.
type Refused []Refusal

// Refusal is one edit that is not allowed.
type Refusal struct {
	Path string
	Line int
	Rule string
}

// Error names the paths and the rules.
func (r Refused) Error() string {
	all := make([]string, 0, len(r))
	for _, one := range r {
		all = append(all, fmt.Sprintf("line %d: %q may not be changed: %s", one.Line, one.Path, one.Rule))
	}
	return strings.Join(all, "; ")
}

// Guard is what protects the project's files.
func (p Project) Guard() (*PathGuard, error) {
	g := &PathGuard{root: p.Root, fixed: always(p.Name == V1, p.LogsBelow())}
	if p.Name == V1 {
		return g, nil
	}
	list, err := hostfs.Read(p.Root, ListFile, mostText)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, problem("", "%w", err)
	}
	g.lifted, g.list = locks().Below("", bytes.ToLower(list)), list
	return g, nil
}

// Check judges all edits before any of them is made, and returns them with
// their paths in one spelling. It refuses with every rule that is broken: that is the
// model's mistake, and any other error is not.
func (g *PathGuard) Check(ctx context.Context, edits []Edit) ([]Edit, error) {
	all, rules, lines := slices.Clone(edits), map[int]string{}, map[string]int{}
	for i := range all {
		rule, err := g.judge(&all[i])
		if err != nil {
			return nil, err
		}
		at, twice := lines[all[i].Path]
		switch {
		case rule != "":
			rules[i] = rule
		case twice:
			rules[i] = fmt.Sprintf("line %d gave it already", at)
		default:
			lines[all[i].Path] = all[i].Line
		}
	}
	var ignored map[string]bool
	if g.lifted != nil {
		var err error
		if ignored, err = Ignored(ctx, g.root, slices.Collect(maps.Keys(lines))...); err != nil {
			return nil, err
		}
	}
	var refused Refused
	for i, e := range all {
		if rules[i] == "" && ignored[e.Path] {
			rules[i] = "ignored by git (.gitignore and other excludes)"
		}
		for dir := path.Dir(e.Path); dir != "." && rules[i] == ""; dir = path.Dir(dir) {
			if at, file := lines[dir]; file {
				rules[i] = fmt.Sprintf("line %d makes a file of the folder %q", at, dir)
			}
		}
		if rules[i] != "" {
			refused = append(refused, Refusal{Path: edits[i].Path, Line: e.Line, Rule: rules[i]})
		}
	}
	if refused != nil {
		return nil, refused
	}
	return all, nil
}

// judge brings an edit's path into its one spelling, and returns the rule that it
// breaks by itself.
func (g *PathGuard) judge(e *Edit) (rule string, err error) {
	e.Path, rule = spell(e.Path)
	if rule == "" {
		rule = g.protected(e.Path)
	}
	if rule != "" {
		return rule, nil
	}
	return g.onDisk(e.Path, e.Delete)
}

// protected is the rule of the lists that protects a path, "" for none. Upper case
// makes no difference to them: on some file systems it makes none to the files.
func (g *PathGuard) protected(name string) string {
	folded := strings.ToLower(name)
	for _, e := range g.fixed {
		if hit(ignore.Exclude([]byte(e.pattern)), folded) {
			return "protected: " + e.words
		}
	}
	switch {
	case !hit(g.lifted, folded):
		return ""
	case hit(locks(), folded):
		base := path.Base(name)
		return "protected: " + base + " is written by a program; a line !" + base + " in " + ListFile + " frees it"
	}
	return "protected by " + ListFile
}

// onDisk is the rule that what stands on the way to a path breaks, or at it.
func (g *PathGuard) onDisk(name string, remove bool) (string, error) {
	for i, c := range name + "/" {
		if c != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(g.root, name[:i]))
		way, at := fmt.Sprintf("%q on the way", name[:i]), i == len(name)
		if at {
			way = "it"
		}
		switch {
		case errors.Is(err, os.ErrNotExist) && remove:
			return "there is no such file to delete", nil
		case errors.Is(err, os.ErrNotExist):
			return "", nil
		case errors.Is(err, syscall.ENAMETOOLONG):
			return tooLong, nil
		case err != nil:
			return "", err
		case info.Mode()&os.ModeSymlink != 0:
			return way + " is a link", nil
		case !at && !info.IsDir():
			return way + " is no folder", nil
		case at && !info.Mode().IsRegular():
			return "it is a folder, or no regular file", nil
		}
	}
	return "", nil
}
