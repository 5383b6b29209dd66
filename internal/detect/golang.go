package detect

import (
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
)

// goPackage is a folder with Go files that Linux builds.
type goPackage struct {
	dir     string // relative to the module, "." for its own
	main    string // a file with package main, "" for a library
	files   []string
	imports []string
}

func loadGo(p *project) {
	p.goVersion()
	mod := p.text("go.mod")
	if strings.Contains(mod, "\nrequire") && !p.has("vendor/modules.txt") {
		p.set("app.prepare", "go mod vendor", p.src("go.mod", "require"))
		p.set("network.allow", "go", p.src("go.mod", "require"))
		p.makes("vendor")
	}
}

var moduleLine = lazyregexp.New(`(?m)^module\s+"?([^\s"]+)`)

// goPackages returns the packages of the module by folder.
func (p *project) goPackages() map[string]*goPackage {
	all := map[string]*goPackage{}
	for _, file := range p.sources(".go") {
		src := p.tree.text(file, maxSource)
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
		if err != nil || !onLinux(file, src) {
			continue
		}
		dir := strings.Trim(strings.TrimPrefix(path.Dir(file), p.dir), "/")
		if dir == "" {
			dir = "."
		}
		if inner := path.Join(p.dir, dir, "go.mod"); dir != "." && p.tree.Has(inner) {
			continue // a module of its own
		}
		pkg := all[dir]
		if pkg == nil {
			pkg = &goPackage{dir: dir}
			all[dir] = pkg
		}
		if pkg.files = append(pkg.files, file); f.Name.Name == "main" && (pkg.main == "" || strings.Contains(src,
			"\nfunc main()")) {
			pkg.main = file
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			pkg.imports = append(pkg.imports, name)
		}
	}
	return all
}

// onLinux says whether the name and the build constraint of a file let Linux build it.
func onLinux(file, src string) bool {
	stem := strings.TrimSuffix(path.Base(file), ".go")
	for _, other := range []string{"windows", "darwin", "freebsd", "js", "wasm", "plan9", "netbsd", "openbsd"} {
		if strings.HasSuffix(stem, "_"+other) {
			return false
		}
	}
	for text := range strings.Lines(src) {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "package ") {
			break
		}
		if expr, err := constraint.Parse(text); err == nil {
			return expr.Eval(func(tag string) bool {
				return tag == "linux" || tag == "amd64" || tag == "unix" || tag == "gc" || strings.HasPrefix(tag, "go1.")
			})
		}
	}
	return true
}

var (
	goServes = lazyregexp.New(`\bhttp\.ListenAndServe(?:TLS)?\(|\bhttp\.Serve\(|\.ListenAndServe(?:TLS)?\(` +
		`|\bgin\.(?:Default|New)\(|\becho\.New\(|\bfiber\.New\(|\bfasthttp\.ListenAndServe|\bhttp\.Server\{`)
	goCommand = lazyregexp.New(`\bcobra\.Command\{|\bcli\.Command\{|\bkingpin\.Command\(|\bsubcommands\.Register\(`)
	goTCP     = lazyregexp.New(`\bnet\.Listen\(\s*"tcp`)
	goPort    = lazyregexp.New(`(?:ListenAndServe(?:TLS)?\(|Addr:\s*|\.Run\(|\.Start\(` +
		`|\.Listen\(\s*(?:"tcp[46]?",\s*)?)"(?:0\.0\.0\.0|\[::\])?:(\d{2,5})"`)
	goLocal = lazyregexp.New(`(?:ListenAndServe(?:TLS)?\(|Addr:\s*|\.Run\(|\.Start\(` +
		`|\.Listen\(\s*(?:"tcp[46]?",\s*)?)"(?:localhost|127\.0\.0\.1):(\d{2,5})"`)
	goEnvPort = lazyregexp.New(`(?:Getenv|LookupEnv)\("PORT"\)|"\$?PORT"|env:"PORT"`)
	goOrPort  = lazyregexp.New(`(?s)"PORT"\s*,\s*"?:?(\d{2,5})|Getenv\("PORT"\).{0,80}?"" \{\s*\w+ :?= "?:?(\d{2,5})` +
		`|env:"PORT"[^\x60]*(?:env)?[dD]efault[=:]"?(\d{2,5})|cmp\.Or\(os\.Getenv\("PORT"\),\s*":?(\d{2,5})`)
	ginRun = lazyregexp.New(`\b\w+\.Run\(\)`) // at PORT, or 8080
	goFlag = lazyregexp.New(`\.(?:String|Int|Uint|Uint16)(?:Var)?P?\((?:&[\w.]+,\s*)?"(?:addr|address|listen|port` +
		`|http|bind)[\w.-]*",\s*(?:"\w",\s*)?"?(?:0\.0\.0\.0)?:?(\d{2,5})"?\s*[,)]`)
)

// reach returns the files of a package and of those in the module that it imports.
func reach(all map[string]*goPackage, module, dir string) (files, imports []string) {
	seen, todo := map[string]bool{dir: true}, []string{dir}
	for len(todo) > 0 {
		pkg := all[todo[0]]
		todo = todo[1:]
		files = append(files, pkg.files...)
		imports = append(imports, pkg.imports...)
		for _, name := range pkg.imports {
			inner, own := strings.CutPrefix(name, module+"/")
			if name == module {
				inner, own = ".", true
			}
			if own && all[inner] != nil && !seen[inner] {
				seen[inner] = true
				todo = append(todo, inner)
			}
		}
	}
	return files, imports
}

func readGo(p *project) {
	all := p.goPackages()
	m := moduleLine().FindStringSubmatch(p.text("go.mod"))
	module := ""
	if m != nil {
		module = m[1]
	}
	var mains []*goPackage
	for _, pkg := range all {
		if pkg.main != "" {
			mains = append(mains, pkg)
		}
	}
	slices.SortFunc(mains, func(a, b *goPackage) int { return strings.Compare(a.dir, b.dir) })
	p.goChecks()
	if chosen := p.chosenMain(mains); chosen != nil {
		mains = []*goPackage{chosen}
	}
	switch {
	case len(mains) == 0:
		p.program("a library", p.src("go.mod", ""))
		p.ask("app.command",
			"no package main is in the module: it is a library, so write a program that uses it and name that")
	case len(mains) == 1:
		p.goMain(all, module, mains[0])
	default:
		p.severalMains(all, module, mains)
	}
}

// chosenMain is the one package main that the Dockerfile builds, or that has the name of the module.
func (p *project) chosenMain(mains []*goPackage) *goPackage {
	if p.image == nil || len(mains) < 2 {
		return nil
	}
	var built []*goPackage
	for _, run := range p.image.runs {
		for _, pkg := range mains {
			name := `(?:\./)?` + regexp.QuoteMeta(pkg.dir)
			if pkg.dir == "." {
				name = `\.`
			}
			if regexp.MustCompile(`go (?:build|install)\b.*\s` + name +
				`(?:/\*?\.go|/main\.go)?(?:\s|$)`).MatchString(run.args) {
				built = append(built, pkg)
			}
		}
	}
	if len(built) == 1 {
		return built[0]
	}
	return nil
}

// goMain records a package main as the app.
func (p *project) goMain(all map[string]*goPackage, module string, pkg *goPackage) {
	kind, from := p.goKind(all, module, pkg)
	source := Source{pkg.main, "package main"}
	name := "./" + strings.TrimPrefix(pkg.dir, ".")
	if pkg.dir == "." {
		name = "."
	}
	if kind == "command" {
		p.program("a program", source)
		command := `go build -C "$ABL_SRC" -o /tmp/app ` + name + ` && /tmp/app`
		p.commands = append(p.commands, Fact{Key: "app.command", Value: command, From: source})
		return
	}
	if !p.contains() && p.subcommands(all, module, pkg) {
		p.ask("app.kind", "a part of the program is a server ("+from.String()+"), and it has other commands",
			Fact{Key: "app.kind", Value: kind, From: from},
			Fact{Key: "app.kind", Value: "command", From: source})
		p.ask("app.command", "it has several commands", Fact{Key: "app.command", Value: "go run " + name, From: source})
		return
	}
	p.server(kind, from)
	p.try(start{command: strings.TrimSpace("go run " + name + " " + p.imageArgs()), from: source})
}

// contains says whether an image or a compose file has a port for the app.
func (p *project) contains() bool {
	return p.wish.Kind != "" || slices.ContainsFunc(p.ports, p.contained) || slices.ContainsFunc(p.serves,
		func(f Fact) bool { return f.From.File == p.at("Procfile") })
}

// subcommands says whether a program has several commands.
func (p *project) subcommands(all map[string]*goPackage, module string, pkg *goPackage) bool {
	files, _ := reach(all, module, pkg.dir)
	return len(goCommand().FindAllString(strings.Join(p.texts(files), "\n"), 3)) > 2
}

// imageArgs are the arguments with which an image starts the program, if they mean the same here.
func (p *project) imageArgs() string {
	if p.image == nil {
		return ""
	}
	words := append(p.image.entry.words(), p.image.cmd.words()...)
	if len(words) < 2 || slices.ContainsFunc(words[1:], func(word string) bool {
		return strings.ContainsAny(word,
			"/$")
	}) {
		return ""
	}
	return shell(words[1:])
}

// goKind is what the program is by what it calls. A program that has both a server and commands
// is a server when its image has a port.
func (p *project) goKind(all map[string]*goPackage, module string, pkg *goPackage) (kind string, from Source) {
	files, _ := reach(all, module, pkg.dir)
	for _, file := range files {
		text := p.tree.text(file, maxSource)
		p.portsIn(file, text, goPort(), goLocal(), goOrPort(), goFlag())
		if at := ginRun().FindStringIndex(text); at != nil && strings.Contains(text, "gin.") {
			p.set("PORT", "PORT", Source{file, lineOf(text, ginRun())})
			p.listens(8080, Source{file, lineOf(text, ginRun())})
		}
		if goEnvPort().MatchString(text) {
			p.set("PORT", "PORT", Source{file, lineOf(text, goEnvPort())})
		}
		if goLocal().MatchString(text) {
			p.say("%s:%s listens on 127.0.0.1 only: abl's tests do not reach it until it listens on 0.0.0.0", file,
				lineOf(text, goLocal()))
		}
		if m := ready().FindStringSubmatchIndex(text); m != nil && goServes().MatchString(strings.Join(p.texts(files),
			"\n")) {
			p.set("app.ready.path", text[m[2]:m[3]], Source{file, line(1 + strings.Count(text[:m[0]], "\n"))})
		}
	}
	for _, k := range []struct {
		kind string
		expr *regexp.Regexp
	}{{"http", goServes()}, {"tcp", goTCP()}} {
		for _, file := range files {
			if text := p.tree.text(file, maxSource); k.expr.MatchString(text) {
				return k.kind, Source{file, lineOf(text, k.expr)}
			}
		}
	}
	return "command", Source{}
}

func (p *project) texts(files []string) (all []string) {
	for _, file := range files {
		all = append(all, p.tree.text(file, maxSource))
	}
	return all
}

// severalMains asks which one is the app, unless one alone is a server.
func (p *project) severalMains(all map[string]*goPackage, module string, mains []*goPackage) {
	var servers []*goPackage
	var choices, ports []Fact
	for _, pkg := range mains {
		probe := &project{ctx: p.ctx, tree: p.tree, dir: p.dir, values: map[string]Fact{}}
		probe.goMain(all, module, pkg)
		for _, s := range probe.starts {
			choices = append(choices, Fact{Key: "app.command", Value: s.command, From: s.from})
			servers = append(servers, pkg)
		}
		choices = append(choices, probe.commands...)
		for _, f := range probe.ports {
			if !slices.Contains(ports, f) {
				ports = append(ports, f)
			}
		}
	}
	if len(servers) == 1 {
		p.goMain(all, module, servers[0])
		var others []string
		for _, pkg := range mains {
			if pkg != servers[0] {
				others = append(others, pkg.main)
			}
		}
		p.say("%s is taken for the app because it alone is a server; other programs are %s", servers[0].main,
			strings.Join(others, ", "))
		return
	}
	if len(servers) > 1 {
		kind, from := p.goKind(all, module, servers[0])
		p.server(kind, from)
		p.ports = nil
	} else {
		p.program("a program", Source{mains[0].main, "package main"})
	}
	p.ask("app.command", "the module has several programs", choices...)
	if len(servers) > 1 {
		p.ask("app.port", "each program has its own", ports...)
	}
}

// goChecks records what Go itself checks.
func (p *project) goChecks() {
	p.check("lint", "go vet ./...", "vet", p.src("go.mod", ""))
	tests := p.tree.Below(p.dir, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(tests) > 0 {
		p.check("test", "go test ./...", "tests", Source{File: tests[0]})
	}
}
