// Package guard says which files of a project a model may change: it knows every
// way to spell a path out of the project, the files that nobody may touch, and
// what git leaves out.
package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"abl/internal/hostfs"
	"abl/orchestrator/codecommit/fence"
	"abl/orchestrator/workspace/ignore"
)

// ListFile is where a project adds to what is protected, and lifts what can be.
const ListFile = "agent-config/protected"

// maxRules is how large a file of rules may be.
const maxRules = 1 << 20

// Guard knows what is protected in one project.
type Guard struct {
	root   string
	fixed  []entry
	lifted *ignore.Rules // lock files, and on top of them the project's list
	list   []byte        // agent-config/protected
	git    *ignored      // nil where ignored files are free
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

// New is the guard of the protocol v2. logs is where the run writes its logs,
// "" when that is outside of the project.
func New(ctx context.Context, root, logs string) (*Guard, error) {
	list, err := hostfs.Read(root, ListFile, maxRules)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, err
	}
	rules, err := excludes(ctx, root)
	if err != nil {
		return nil, err
	}
	git, err := newIgnored(root, rules)
	if err != nil {
		return nil, err
	}
	below := ignore.Exclude([]byte(strings.ToLower(strings.Join(locks(), "\n")))).Below("", []byte(strings.ToLower(string(list))))
	return &Guard{root: root, fixed: always(logs), lifted: below, list: list, git: git}, nil
}

// NewV1 is the guard of the protocol v1.
func NewV1(root, logs string) *Guard { return &Guard{root: root, fixed: alwaysV1(logs)} }

// Check judges all edits before any of them is made, and returns them with
// their paths in one spelling. It refuses with every rule that is broken.
func (g *Guard) Check(edits []fence.Edit) ([]fence.Edit, error) {
	var refused Refused
	all := make([]fence.Edit, 0, len(edits))
	lines := map[string]int{}
	for _, e := range edits {
		clean, rule := spell(e.Path)
		if rule == "" {
			rule = g.protected(clean)
		}
		if at, twice := lines[clean]; rule == "" && twice {
			rule = fmt.Sprintf("line %d gave it already", at)
		}
		if rule == "" {
			var err error
			if rule, err = g.onDisk(clean, e.Delete); err != nil {
				return nil, err
			}
		}
		if rule != "" {
			refused = append(refused, Refusal{Path: e.Path, Line: e.Line, Rule: rule})
			continue
		}
		e.Path, lines[clean] = clean, e.Line
		all = append(all, e)
	}
	for _, e := range all {
		for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
			if at, ok := lines[dir]; ok {
				refused = append(refused, Refusal{Path: e.Path, Line: e.Line, Rule: fmt.Sprintf("line %d makes a file of the folder %q", at, dir)})
			}
		}
	}
	if len(refused) > 0 {
		return nil, refused
	}
	return all, nil
}

// protected is the rule that protects a path, "" for none. Upper case makes no
// difference to the lists: on some file systems it makes none to the files.
func (g *Guard) protected(name string) string {
	folded := strings.ToLower(name)
	for _, e := range g.fixed {
		if hit(ignore.Exclude([]byte(e.pattern)), folded) {
			return "protected: " + e.words
		}
	}
	if g.lifted != nil && hit(g.lifted, folded) {
		if base := path.Base(name); hit(ignore.Exclude([]byte(strings.ToLower(strings.Join(locks(), "\n")))), folded) {
			return "protected: " + base + " is written by a program; a line !" + base + " in " + ListFile + " frees it"
		}
		return "protected by " + ListFile
	}
	if g.git != nil && g.git.match(name) {
		return "ignored by git (.gitignore and other excludes)"
	}
	return ""
}

// onDisk is the rule that what stands on the way to a path breaks, or at it.
func (g *Guard) onDisk(name string, remove bool) (string, error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(g.root, name[:i]))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return gone(remove), nil
		case errors.Is(err, syscall.ENAMETOOLONG):
			return tooLong, nil
		case err != nil:
			return "", err
		case info.Mode()&os.ModeSymlink != 0:
			return fmt.Sprintf("%q on the way is a link", name[:i]), nil
		case !info.IsDir():
			return fmt.Sprintf("%q on the way is no folder", name[:i]), nil
		}
	}
	info, err := os.Lstat(filepath.Join(g.root, name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return gone(remove), nil
	case errors.Is(err, syscall.ENAMETOOLONG):
		return tooLong, nil
	case err != nil:
		return "", err
	case info.Mode()&os.ModeSymlink != 0:
		return "it is a link", nil
	case info.IsDir():
		return "it is a folder", nil
	case !info.Mode().IsRegular():
		return "it is no regular file", nil
	}
	return "", nil
}

func gone(remove bool) string {
	if remove {
		return "there is no such file to delete"
	}
	return ""
}
