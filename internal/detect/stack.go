package detect

import (
	"path"
	"slices"
	"strings"
)

// stack describes how the projects of a language are recognized.
type stack struct {
	name    string
	marks   string // a project has at least one of these files; the first is its manifest
	endings string // of its sources
	runs    string // the commands that run in the repository as they are, a regular expression
}

// stacks are the languages that Read recognizes, the most likely ones first.
var stacks = []stack{
	{
		name:    "node",
		marks:   "package.json",
		endings: ".js .mjs .cjs .ts .mts .tsx .jsx .vue .svelte",
	},
	{
		name:    "python",
		marks:   "pyproject.toml requirements.txt setup.py manage.py uv.lock poetry.lock requirements/base.txt Pipfile",
		endings: ".py",
	},
	{name: "go", marks: "go.mod", endings: ".go", runs: `^go run `},
	{name: "rust", marks: "Cargo.toml", endings: ".rs", runs: `^cargo run`},
	{name: "java", marks: "pom.xml build.gradle build.gradle.kts", endings: ".java .kt .groovy .scala"},
	{name: "ruby", marks: "Gemfile", endings: ".rb", runs: `^(?:bin/)?(?:bundle|rails|ruby|puma|rackup|rake)(?: |$)`},
	{name: "php", marks: "composer.json", endings: ".php", runs: `^php `},
	{name: "none"},
}

// stackOf returns the stack with a name.
func stackOf(name string) stack {
	return stacks[slices.IndexFunc(stacks, func(s stack) bool { return s.name == name })]
}

// newLanguage returns the source for the stack of a project.
func newLanguage(p *project) language {
	switch p.report.Stack {
	case "node":
		return &node{project: p}
	case "python":
		return &python{project: p}
	case "go":
		return &golang{project: p}
	case "rust":
		return &rust{project: p}
	case "java":
		return java{p}
	case "ruby":
		return ruby{p}
	case "php":
		return &php{project: p}
	}
	return plain{p}
}

// Stacks returns the names of the stacks. The last one is "none".
func Stacks() (names []string) {
	for _, s := range stacks {
		names = append(names, s.name)
	}
	return names
}

// plain is a repository without a known language. A program of an interpreter in abl's image runs there.
type plain struct{ *project }

func (p plain) load() {
	p.choose("node", p.fromImage("node"))
	p.choose("python", p.fromImage("python"))
}

func (plain) find() {}

func (p plain) command(name string, words []string) string {
	if len(words) < 2 || !p.has(words[1]) {
		return ""
	}
	switch name {
	case "node":
		return strings.Join(words, " ")
	case "python", "python3":
		return "python3 " + strings.Join(words[1:], " ")
	}
	return ""
}

// stacksIn returns the stacks of the projects in a folder, each with the file that shows it.
func (p *project) stacksIn(dir string) (found []Fact) {
	for _, s := range stacks {
		if file := (folder{p.tree, dir}).first(s.marks); file != "" {
			found = append(found, fact("stack", s.name, Source{File: path.Join(dir, file)}))
		}
	}
	return found
}

// findStack chooses the stack of the folder.
func (p *project) findStack() {
	found := p.stacksIn(p.dir)
	switch scripts := p.sources("python"); {
	case p.wish.Stack != "":
		p.report.Stack = p.wish.Stack
	case len(found) > 0 && p.mostlyC(found[0].Value):
		p.say("abl treats %s as part of a program in C; if it is the app itself, use --stack %s", found[0].From, found[0].Value)
		found = nil
	case len(found) > 0:
		p.report.Stack = p.mainStack(found)
		for _, f := range found {
			if f.Value != p.report.Stack {
				p.say("abl treats %s as part of the %s project; if it is the app itself, use --stack %s", f.From, p.report.Stack, f.Value)
			}
		}
	case len(scripts) > 0 && path.Dir(p.inner(scripts[0])) == ".":
		p.report.Stack = "python"
		found = []Fact{fact("stack", "python", Source{File: scripts[0]})}
	default:
		p.inFolders()
	}
	for _, f := range found {
		if f.Value == p.report.Stack {
			p.report.Facts = append(p.report.Facts, f)
		}
	}
	p.language = newLanguage(p)
}

// mostlyC reports whether there are ten times as many files in C or C++ as in the language of a stack.
func (p *project) mostlyC(name string) bool {
	c := p.count(".c .cc .cpp .cxx")
	return c >= 10 && c > 10*p.count(stackOf(name).endings)
}

// imageStacks are the stacks of well-known images whose names differ from the stack's.
var imageStacks = map[string]string{
	"golang": "go", "openjdk": "java", "eclipse-temurin": "java", "maven": "java", "gradle": "java", "bun": "node",
}

// mainStack returns the stack of the server: web frameworks of other languages often have a
// package.json for their pages.
func (p *project) mainStack(found []Fact) string {
	base := ""
	for _, b := range p.bases() { // the last stage runs
		base, _ = baseOf(b.Value)
	}
	if imageStacks[base] != "" {
		base = imageStacks[base]
	}
	for _, f := range found {
		if f.Value == base {
			return base
		}
	}
	for _, f := range found {
		if f.Value != "node" {
			return f.Value
		}
	}
	return "node"
}

// inFolders asks which subfolder to read if some contain projects.
func (p *project) inFolders() {
	seen := map[string]bool{".": true}
	var choices []Fact
	for _, name := range p.tree.Below(p.dir, nil) {
		inner := path.Dir(p.inner(name))
		if parts := strings.Split(inner, "/"); len(parts) > 2 || seen[inner] || slices.ContainsFunc(parts, aside) {
			continue
		}
		seen[inner] = true
		if found := p.stacksIn(p.at(inner)); len(found) > 0 {
			choices = append(choices, Fact{"source.dir", p.at(inner), found[0].From, found[0].Value})
		}
	}
	if len(choices) > 0 {
		p.ask("source.dir", "there are projects in subfolders: choose one with --dir", choices...)
	}
}
