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
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"
	"abl/internal/lazyregexp"
	"abl/internal/redact"
)

// listFile is where a project adds to what is protected, and lifts what can be.
const listFile = ConfigDir + "/protected"

// lockFiles are what package managers write for themselves, and the ignore files of
// folders: protected unless agent-config/protected lifts them.
const lockFiles = "go.sum package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock poetry.lock " +
	"uv.lock Pipfile.lock composer.lock Gemfile.lock mix.lock flake.lock gradle.lockfile " +
	"packages.lock.json pubspec.lock deno.lock Cargo.lock .gitignore"

// PathGuard knows what is protected in one project.
type PathGuard struct {
	root  string
	fixed []string // see Profile
	// Lock files, and on top of them the project's list; nil of the protocol v1, which asks no git either.
	lifted *ignore.Rules
	list   string // agent-config/protected
}

// Guard is what protects the project's files.
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

// Check judges all edits before any of them is made, and returns them with
// their paths in one spelling. Every rule that is broken is told in one Mistake.
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
			broken[i] = fmt.Sprintf("line %d gave it already", at)
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
				rule = fmt.Sprintf("line %d makes a file of the folder %q", at, dir)
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

// judge returns the rule that an edit breaks by itself.
func (g *PathGuard) judge(e Edit) (rule string, err error) {
	if rule = misspelled(e.Path); rule == "" {
		rule = g.protected(e.Path)
	}
	if rule != "" {
		return rule, nil
	}
	at, rule, err := stands(g.root, e.Path)
	switch {
	case rule != "" || err != nil:
	case at == nil && e.Delete:
		rule = "there is no such file to delete"
	case at != nil && !e.Delete:
		return g.illegible(e.Path)
	}
	return rule, err
}

// illegible is the rule against rewriting a file that is not UTF-8 text: no answer can have seen all
// of its bytes.
func (g *PathGuard) illegible(name string) (rule string, err error) {
	data, err := hostfs.Read(g.root, name, mostText)
	if err == nil && (!utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0) {
		rule = "the file is not UTF-8 text, so an answer cannot give its whole content"
	}
	return rule, err
}

// odd is a spelling that leads elsewhere on some system, or in some reader's eyes.
var odd = lazyregexp.New(`(?i)\\|^[A-Z]:|%2e|%2f|%5c|(^|/)(~(/|$)|git~1(/|$)| )|\.git:|[ .](/|$)|` +
	"[\u2024\u2025\u2026\ufe52\uff0e\uff61\u2044\u2215\u29f8\uff0f\u29f5\ufe68\uff3c]")

// misspelled is the rule that the spelling of a path breaks.
func misspelled(name string) string {
	// Bytes that a file system allows in a name and, about, in a path.
	const longest, most = 255, 4000
	tooLong := func(part string) bool { return len(part) > longest }
	hidden := func(r rune) bool { return !redact.Plain(r) }
	switch {
	case len(name) > most || slices.ContainsFunc(strings.Split(name, "/"), tooLong):
		return "it is longer than any path, or one of its names longer than 255 bytes"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, hidden):
		return "it has a character that cannot be seen, or is not valid UTF-8"
	case name == "." || path.Clean(name) != name || !filepath.IsLocal(name):
		return `it is not the plain path of a file below the project's folder: no "..", no "." in the middle, no slash at its ends, no two together`
	case odd().MatchString(name):
		return "it has a backslash, a drive's letter, a ~ for a home, what passes for a dot or a slash, " +
			".git spelled another way, or a name that begins with a blank or ends with a blank or a dot"
	}
	return ""
}

// protected is the rule of the lists that protects a path, "" for none. Upper case
// makes no difference to them: on some file systems it makes none to the files.
func (g *PathGuard) protected(name string) string {
	folded := strings.ToLower(name)
	for _, pattern := range g.fixed {
		if hit(rules(strings.TrimSuffix(pattern, "/")), folded) {
			return "protected: " + inWords(pattern)
		}
	}
	switch {
	case !hit(g.lifted, folded):
		return ""
	case hit(locks(), folded):
		base := path.Base(name)
		return "protected: " + base + " is written by a program; a line !" + base + " in " + listFile + " frees it"
	}
	return "protected by " + listFile
}

// inWords is a pattern of Profile.Fixed as prompts and errors have it.
func inWords(pattern string) string {
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

// locks are the rules of lock files.
func locks() *ignore.Rules { return rules(strings.ReplaceAll(lockFiles, " ", "\n")) }

// rules are patterns, a line each, in lower case.
func rules(patterns string) *ignore.Rules {
	return ignore.Exclude([]byte(strings.ToLower(patterns)))
}

// hit says whether rules match a path or a folder on its way, which git too
// looks at first.
func hit(rules *ignore.Rules, path string) bool {
	for i := range len(path) {
		if path[i] == '/' && rules.Ignored(path[:i], true) {
			return true
		}
	}
	return rules.Ignored(path, false)
}

// stands is what stands at a path, nil when nothing does; why says what is in the way of a
// file there.
func stands(root, name string) (at fs.FileInfo, why string, err error) {
	way := ""
	for part := range strings.SplitSeq(name, "/") {
		if at != nil && !at.IsDir() {
			return nil, fmt.Sprintf("%q on the way is no folder", way), nil
		}
		way = path.Join(way, part)
		at, err = os.Lstat(filepath.Join(root, way))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, "", nil
		case err != nil:
			return nil, "", err
		case at.Mode()&fs.ModeSymlink != 0:
			return nil, fmt.Sprintf("%q is a link", way), nil
		}
	}
	if !at.Mode().IsRegular() {
		return nil, "it is a folder, or no regular file", nil
	}
	return at, "", nil
}

// List is what is protected, in words, one entry each.
func (g *PathGuard) List() (all []string) {
	for _, pattern := range g.fixed {
		all = append(all, inWords(pattern))
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
