package detect

import (
	"path"
	"slices"
	"strings"
)

// language reads the files of one stack: load what others build on, read the rest.
type language struct {
	marks []string // files of which a project has at least one
	load  func(*project)
	read  func(*project)
}

func nothing(*project) {}

func languageOf(stack string) language {
	switch stack {
	case "node":
		return language{[]string{"package.json"}, loadNode, readNode}
	case "python":
		return language{[]string{"pyproject.toml", "requirements.txt", "setup.py", "manage.py", "uv.lock", "poetry.lock",
			"requirements/base.txt", "Pipfile"}, loadPython, readPython}
	case "go":
		return language{[]string{"go.mod"}, loadGo, readGo}
	case "rust":
		return language{[]string{"Cargo.toml"}, loadRust, readRust}
	case "java":
		return language{[]string{"pom.xml", "build.gradle", "build.gradle.kts"}, loadJava, readJava}
	case "ruby":
		return language{[]string{"Gemfile"}, loadRuby, readRuby}
	case "php":
		return language{[]string{"composer.json"}, loadPHP, readPHP}
	}
	return language{nil, nothing, nothing}
}

func (p *project) language() language { return languageOf(p.report.Stack) }

// marked returns the stacks of which a folder has a file, with that file.
func (p *project) marked(dir string) (found []Fact) {
	for _, stack := range Stacks() {
		for _, mark := range languageOf(stack).marks {
			if at := path.Join(dir, mark); p.tree.Has(at) {
				found = append(found, Fact{Key: "stack", Value: stack, From: Source{File: at}})
				break
			}
		}
	}
	return found
}

// findStack chooses the stack of the folder that is worked in.
func (p *project) findStack() {
	found := p.marked(p.dir)
	p.report.Stack = "none"
	switch {
	case p.wish.Stack != "":
		p.report.Stack = p.wish.Stack
	case len(found) > 0 && p.mostlyC(found[0].Value):
		p.say("%s is taken for a part of a program in C: --stack %s takes it for the whole", found[0].From, found[0].Value)
		return
	case len(found) == 0:
		if scripts := p.sources(".py"); len(scripts) > 0 && !strings.Contains(strings.Trim(strings.TrimPrefix(scripts[0],
			p.dir), "/"), "/") {
			p.report.Stack = "python"
			found = []Fact{{Key: "stack", Value: "python", From: Source{File: scripts[0]}}}
			break
		}
		p.inFolders()
		return
	default:
		chosen := p.mainStack(found)
		p.report.Stack = chosen.Value
		for _, other := range found {
			if other != chosen {
				p.say("%s is taken for a part of the %s project: --stack %s takes it for the whole", other.From, chosen.Value,
					other.Value)
			}
		}
	}
	for _, f := range found {
		if f.Value == p.report.Stack {
			p.report.Facts = append(p.report.Facts, f)
		}
	}
}

// endings are how the sources of a stack are named.
var endings = map[string][]string{
	"node": {".js", ".ts", ".mjs", ".tsx", ".jsx", ".cjs", ".vue",
		".svelte"}, "python": {".py"}, "go": {".go"}, "rust": {".rs"},
	"java": {".java", ".kt", ".groovy", ".scala"}, "ruby": {".rb"}, "php": {".php"},
}

// mostlyC says whether there are ten times as many files in C or C++ as in the language of a stack.
func (p *project) mostlyC(stack string) bool {
	count := func(all ...string) int {
		return len(p.tree.Below(p.dir, func(name string) bool { return slices.Contains(all, path.Ext(name)) }))
	}
	c := count(".c", ".cc", ".cpp", ".cxx")
	return c >= 10 && c > 10*count(endings[stack]...)
}

// mainStack is the one of several that holds the server: web frameworks of other languages often
// bring a package.json for their pages.
func (p *project) mainStack(found []Fact) Fact {
	if len(found) == 1 {
		return found[0]
	}
	base := ""
	file := p.at(p.first("Dockerfile", "Containerfile"))
	if bases := readImage(file, p.tree.Text(file)).bases; len(bases) > 0 {
		base, _ = baseOf(strings.Fields(bases[len(bases)-1].args)[0])
	}
	of := map[string]string{"golang": "go", "openjdk": "java", "eclipse-temurin": "java", "maven": "java",
		"gradle": "java", "bun": "node"}
	if of[base] != "" {
		base = of[base]
	}
	for _, f := range found {
		if f.Value == base {
			return f
		}
	}
	for _, f := range found {
		if f.Value != "node" {
			return f
		}
	}
	return found[0]
}

// inFolders asks for the folder to work in where several have a project and the whole has none that
// starts.
func (p *project) inFolders() {
	seen := map[string]bool{}
	var choices []Fact
	for _, name := range p.tree.Below(p.dir, func(string) bool { return true }) {
		inner := strings.Trim(strings.TrimPrefix(path.Dir(name), p.dir), "/")
		parts := strings.Split(inner, "/")
		if inner == "" || inner == "." || len(parts) > 2 || seen[inner] || slices.ContainsFunc(parts, aside) {
			continue
		}
		seen[inner] = true
		for _, f := range p.marked(path.Join(p.dir, inner))[:min(1, len(p.marked(path.Join(p.dir, inner))))] {
			choices = append(choices, Fact{Key: "source.dir", Value: path.Join(p.dir, inner), From: f.From, Note: f.Value})
		}
	}
	if len(choices) > 0 {
		p.ask("source.dir", "there are projects in folders: --dir names the one that the work is about", choices...)
	}
}

// readMakefile records targets where the language has no command of its own.
func (p *project) readMakefile() {
	targets := p.makeTargets()
	file := p.first("Makefile", "makefile", "GNUmakefile")
	if file == "" || p.report.Stack != "none" {
		return
	}
	for _, c := range [][2]string{{"lint", "lint"}, {"test", "test"}, {"check", "test"}} {
		if at := targets[c[0]]; at != "" {
			p.check(c[1], "make "+c[0], c[0], p.src(file, at))
		}
	}
	from := p.src(file, "")
	if c := p.tree.Below(p.dir, func(name string) bool {
		return path.Ext(name) == ".c" || path.Ext(name) == ".cpp" || path.Ext(name) == ".cc"
	}); len(c) > 0 {
		p.needs(from, "build-essential")
	} else if len(p.checks) > 0 {
		p.needs(from, "make")
	}
	for _, name := range []string{"run", "serve", "start"} {
		if at := targets[name]; at != "" {
			p.ask("app.command", "nothing says whether it is a server or a program",
				Fact{Key: "app.command", Value: "make " + name, From: p.src(file, at)})
			return
		}
	}
}
