package codecommit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"
	"abl/internal/redact"
)

// listFile is the file with which a project changes the list of protected files.
const listFile = ConfigDir + "/protected"

// lockFiles are files that package managers write, and the ignore files of folders. They are
// protected unless agent-config/protected lifts it.
const lockFiles = "go.sum package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock poetry.lock " +
	"uv.lock Pipfile.lock composer.lock Gemfile.lock mix.lock flake.lock gradle.lockfile " +
	"packages.lock.json pubspec.lock deno.lock Cargo.lock .gitignore"

// PathGuard has the protected files of one project.
type PathGuard struct {
	root  string
	fixed []string // see Profile
	// Rules of lock files and of the project's list. Nil for the protocol v1, which does not ask git.
	lifted *ignore.Rules
	list   string // agent-config/protected
}

// Guard returns the guard of the project's files.
func (p Project) Guard() (*PathGuard, error) {
	g := &PathGuard{root: p.Root, fixed: strings.Fields(p.Fixed)}
	if logs := p.LogsBelow(); logs != "" && g.protected(logs) == "" {
		literal := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
		g.fixed = append(g.fixed, "/"+literal.Replace(logs)+"/")
	}
	if p.Name == V1 {
		return g, nil
	}
	list, _, err := p.text(listFile)
	g.lifted, g.list = locks().Below("", []byte(strings.ToLower(list))), list
	return g, err
}

// Check checks all edits before any of them is made, and returns them with normalized paths. A
// Mistake lists every broken rule.
func (g *PathGuard) Check(ctx context.Context, edits []Edit) ([]Edit, error) {
	all, broken, lines := slices.Clone(edits), make([]string, len(edits)), map[string]int{}
	for i := range all {
		e, err := &all[i], error(nil)
		for strings.HasPrefix(e.Path, "./") {
			e.Path = e.Path[len("./"):]
		}
		if broken[i], err = g.judge(*e); err != nil {
			return nil, err
		}
		if at, twice := lines[e.Path]; twice {
			broken[i] = fmt.Sprintf("line %d already gave it", at)
		} else if broken[i] == "" {
			lines[e.Path] = e.Line
		}
	}
	var ignored map[string]bool
	var err error
	if g.lifted != nil {
		ignored, err = Ignored(ctx, g.root, slices.Collect(maps.Keys(lines))...)
	}
	var refused []string
	for i, e := range all {
		rule := broken[i]
		if rule == "" && ignored[e.Path] {
			rule = "ignored by git (.gitignore and other excludes)"
		}
		for dir := path.Dir(e.Path); dir != "." && rule == ""; dir = path.Dir(dir) {
			if at, file := lines[dir]; file {
				rule = fmt.Sprintf("line %d makes the folder %q a file", at, dir)
			}
		}
		if rule != "" {
			refused = append(refused, wrong(e.Line, "%q may not be changed: %s", edits[i].Path, rule).Error())
		}
	}
	if err == nil && refused != nil {
		err = Mistake(strings.Join(refused, "; "))
	}
	return all, err
}

// judge returns the rule that an edit breaks, regardless of other edits.
func (g *PathGuard) judge(e Edit) (rule string, err error) {
	if rule = misspelled(e.Path); rule == "" {
		rule = g.protected(e.Path)
	}
	if rule != "" {
		return rule, nil
	}
	at, rule, err := fileAt(g.root, e.Path)
	switch {
	case rule != "" || err != nil:
	case at == nil && e.Delete:
		rule = "there is no such file to delete"
	case at != nil && !e.Delete:
		return g.illegible(e.Path)
	}
	return rule, err
}

// illegible returns the rule against rewriting a file that is not UTF-8 text: the model cannot have
// seen all of its bytes.
func (g *PathGuard) illegible(name string) (rule string, err error) {
	data, err := hostfs.Read(g.root, name, mostText)
	if err == nil && (!utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0) {
		rule = "the file is not UTF-8 text, so an answer cannot give its whole content"
	}
	return rule, err
}

// odd matches a spelling that means another path on some system, or looks like another path.
var odd = regexp.MustCompile(`(?i)\\|^[A-Z]:|%2e|%2f|%5c|(^|/)(~(/|$)|git~1(/|$)| )|\.git:|[ .](/|$)|` +
	"[\u2024\u2025\u2026\ufe52\uff0e\uff61\u2044\u2215\u29f8\uff0f\u29f5\ufe68\uff3c]")

// misspelled returns the rule that the spelling of a path breaks.
func misspelled(name string) string {
	// Largest length of a name and, roughly, of a path in file systems.
	const longest, most = 255, 4000
	tooLong := func(part string) bool { return len(part) > longest }
	hidden := func(r rune) bool { return !redact.Plain(r) }
	switch {
	case len(name) > most || slices.ContainsFunc(strings.Split(name, "/"), tooLong):
		return "it is longer than a path can be, or one of its names is longer than 255 bytes"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, hidden):
		return "it has an invisible character, or is not valid UTF-8"
	case name == "." || path.Clean(name) != name || !filepath.IsLocal(name):
		return `it is not a plain path of a file below the project's folder: no "..", no "." in the middle, no slash at its ends, no double slash`
	case odd.MatchString(name):
		return "it has a backslash, a drive letter, a ~ for a home, a character that looks like a dot or a slash, " +
			"another spelling of .git, or a name that begins with a blank or ends with a blank or a dot"
	}
	return ""
}

// protected returns the rule that protects a path, or "". It ignores case, as some file systems do.
func (g *PathGuard) protected(name string) string {
	folded := strings.ToLower(name)
	for _, pattern := range g.fixed {
		if hit(rules(strings.TrimSuffix(pattern, "/")), folded) {
			return "protected: " + patternText(pattern)
		}
	}
	switch {
	case !hit(g.lifted, folded):
		return ""
	case hit(locks(), folded):
		base := path.Base(name)
		return "protected: " + base + " is written by a program; a line !" + base + " in " + listFile + " allows changes"
	}
	return "protected by " + listFile
}

// patternText describes a pattern of Profile.Fixed.
func patternText(pattern string) string {
	name, top := strings.CutPrefix(pattern, "/")
	name, folder := strings.CutSuffix(name, "/")
	start, open := strings.CutSuffix(name, "*")
	switch {
	case folder:
		return "anything in the " + name + " folder"
	case open:
		return "anything whose name begins with " + start
	case top:
		return name
	}
	return "any file named " + name
}

// locks returns the rules of lock files.
func locks() *ignore.Rules { return rules(strings.ReplaceAll(lockFiles, " ", "\n")) }

// rules returns the rules of patterns, one per line, in lower case.
func rules(patterns string) *ignore.Rules {
	return ignore.Exclude([]byte(strings.ToLower(patterns)))
}

// hit reports whether rules match a path or a folder above it. git checks folders first, too.
func hit(rules *ignore.Rules, path string) bool {
	for i := range len(path) {
		if path[i] == '/' && rules.Ignored(path[:i], true) {
			return true
		}
	}
	return rules.Ignored(path, false)
}

// fileAt returns the regular file at a path, nil if it does not exist. why is the reason why there
// cannot be a file.
func fileAt(root, name string) (at fs.FileInfo, why string, err error) {
	sofar := ""
	for part := range strings.SplitSeq(name, "/") {
		if at != nil && !at.IsDir() {
			return nil, fmt.Sprintf("%q in its path is not a folder", sofar), nil
		}
		sofar = path.Join(sofar, part)
		at, err = os.Lstat(filepath.Join(root, sofar))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, "", nil
		case err != nil:
			return nil, "", err
		case at.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Sprintf("%q is a link", sofar), nil
		}
	}
	if !at.Mode().IsRegular() {
		return nil, "it is a folder, or not a regular file", nil
	}
	return at, "", nil
}

// List describes the protected files, one entry each.
func (g *PathGuard) List() (all []string) {
	for _, pattern := range g.fixed {
		all = append(all, patternText(pattern))
	}
	if g.lifted == nil {
		return all
	}
	all = append(all, "anything that git ignores (.gitignore and other excludes)")
	free := func(name string) bool { return !hit(g.lifted, strings.ToLower(name)) }
	if names := slices.DeleteFunc(strings.Fields(lockFiles), free); len(names) > 0 {
		all = append(all, "in any folder: "+strings.Join(names, ", "))
	}
	for l := range strings.Lines(g.list) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' && l[0] != '!' {
			all = append(all, "anything that matches "+l)
		}
	}
	return all
}
