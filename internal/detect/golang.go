package detect

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/toolchain"
)

// golang reads the modules of Go.
type golang struct {
	*project
	module   string
	packages map[string]*goPackage // by folder
}

// goPackage is a folder with Go files that are built on Linux.
type goPackage struct {
	dir     string // relative to the module, "." for its root
	main    string // a file of package main, "" for a library
	files   []string
	imports []string
}

func (g *golang) src(place string) Source { return g.project.src("go.mod", place) }

func (g *golang) load() {
	mod := g.text("go.mod")
	g.module = capture(`(?m)^module\s+"?([^\s"]+)`, mod)
	g.version(capture(`(?m)^go (\d+\.\d+)`, mod))
	for _, m := range captures(`(?m)^(?:require)?\s+([\w.-]+\.\w+/\S+) v`, mod) {
		g.deps[m[1]] = g.src("require")
	}
	if strings.Contains(mod, "\nrequire") && !g.has("vendor/modules.txt") {
		g.install(g.src("require"), "go mod vendor", "go", "vendor")
	}
}

// version takes the version of go.mod. If it is older than all that abl has, it takes the newest Go,
// which compiles older modules.
func (g *golang) version(want string) {
	lines, from := toolchain.Lines("go"), g.src("go")
	newest := lines[len(lines)-1]
	switch {
	case want == "":
	case slices.Contains(lines, want):
		g.set("toolchain.go", want, from)
	case slices.Compare(numbers(want), numbers(newest)) < 0:
		g.note("toolchain.go", newest, from, "asks for "+want+" or newer")
	default:
		g.ask("toolchain.go", fmt.Sprintf("%s asks for Go %s: abl has %s", from, want, strings.Join(lines, ", ")))
	}
}

// loadPackages reads the packages of the module.
func (g *golang) loadPackages() {
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", true
	linux.JoinPath = path.Join
	linux.OpenFile = func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(g.code(name))), nil }
	g.packages = map[string]*goPackage{}
	for _, file := range g.sources("go") {
		f, err := parser.ParseFile(token.NewFileSet(), file, g.code(file), parser.ImportsOnly)
		built, _ := linux.MatchFile(path.Dir(file), path.Base(file))
		if err != nil || !built {
			continue
		}
		dir := path.Dir(g.inner(file))
		pkg := g.packages[dir]
		if pkg == nil {
			pkg = &goPackage{dir: dir}
			g.packages[dir] = pkg
		}
		pkg.files = append(pkg.files, file)
		if f.Name.Name == "main" && (pkg.main == "" || strings.Contains(g.code(file), "\nfunc main()")) {
			pkg.main = file
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			pkg.imports = append(pkg.imports, name)
		}
	}
}

// reach returns the files of a package and of the packages in the module that it imports.
func (g *golang) reach(dir string) (files []string) {
	seen := map[string]bool{dir: true}
	for todo := []string{dir}; len(todo) > 0; todo = todo[1:] {
		pkg := g.packages[todo[0]]
		files = append(files, pkg.files...)
		for _, name := range pkg.imports {
			inner, own := strings.CutPrefix(name+"/", g.module+"/")
			if inner = path.Clean(inner); own && g.packages[inner] != nil && !seen[inner] {
				seen[inner] = true
				todo = append(todo, inner)
			}
		}
	}
	return files
}

// goListens matches the calls that precede an address.
const goListens = `(?:ListenAndServe(?:TLS)?\(|Addr:\s*|\.Run\(|\.Start\(|\.Listen\(\s*(?:"tcp[46]?",\s*)?)`

var (
	goCommand = `\bcobra\.Command\{|\bcli\.Command\{|\bkingpin\.Command\(|\bsubcommands\.Register\(`
	ginRun    = `\b\w+\.Run\(\)` // on PORT, or 8080
	goSigns   = signs{
		ports: []string{
			goListens + `"(?:0\.0\.0\.0|\[::\]|localhost|127\.0\.0\.1)?:(\d{2,5})"`,
			`(?s)"PORT"\s*,\s*"?:?(\d{2,5})|Getenv\("PORT"\).{0,80}?"" \{\s*\w+ :?= "?:?(\d{2,5})` +
				`|env:"PORT"[^\x60]*(?:env)?[dD]efault[=:]"?(\d{2,5})|cmp\.Or\(os\.Getenv\("PORT"\),\s*":?(\d{2,5})`,
			`\.(?:String|Int|Uint|Uint16)(?:Var)?P?\((?:&[\w.]+,\s*)?"(?:addr|address|listen|port` +
				`|http|bind)[\w.-]*",\s*(?:"\w",\s*)?"?(?:0\.0\.0\.0)?:?(\d{2,5})"?\s*[,)]`,
			`(?:Getenv|LookupEnv)\("PORT"\)|"\$?PORT"|env:"PORT"`,
		},
		http: `\bhttp\.Serve\(|\.ListenAndServe(?:TLS)?\(|\bgin\.(?:Default|New)\(` +
			`|\becho\.New\(|\bfiber\.New\(|\bfasthttp\.ListenAndServe|\bhttp\.Server\{`,
		tcp:   `\bnet\.Listen\(\s*"tcp`,
		local: goListens + `"(?:localhost|127\.0\.0\.1):(\d{2,5})"`,
	}
)

func (g *golang) find() {
	g.check("lint", "go vet ./...", "vet", g.src(""))
	tests := g.tree.Below(g.dir, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(tests) > 0 {
		g.check("test", "go test ./...", "tests", Source{File: tests[0]})
	}
	g.loadPackages()
	var mains []*goPackage
	for _, pkg := range g.packages {
		if pkg.main != "" {
			mains = append(mains, pkg)
		}
	}
	slices.SortFunc(mains, func(a, b *goPackage) int { return strings.Compare(a.dir, b.dir) })
	mains = g.chosen(mains)
	switch len(mains) {
	case 0:
		g.program("a library", "", g.src(""), "")
		g.ask("app.command",
			"the module is a library without package main: add a program that uses it, and enter its command here")
	case 1:
		g.main(mains[0])
	default:
		g.several(mains)
	}
}

// chosen returns the package main that the Dockerfile builds, or all if it does not build exactly one.
func (g *golang) chosen(mains []*goPackage) []*goPackage {
	if g.image == nil {
		return mains
	}
	built := slices.DeleteFunc(slices.Clone(mains), func(pkg *goPackage) bool {
		name := `(?:\./)?` + regexp.QuoteMeta(pkg.dir)
		call := regexp.MustCompile(`go (?:build|install)\b.*\s` + name + `(?:/\*?\.go|/main\.go)?(?:\s|$)`)
		return !slices.ContainsFunc(g.image.runs, call.MatchString)
	})
	if len(built) != 1 {
		return mains
	}
	return built
}

// main records a package main as the app.
func (g *golang) main(pkg *goPackage) {
	kind, from, commands := g.kindOf(pkg)
	source, name := Source{pkg.main, "package main"}, "./"+pkg.dir
	if !g.ignores("app.bin") {
		g.report.Ignore = append(g.report.Ignore, "app.bin")
	}
	if pkg.dir == "." {
		name = "."
	}
	switch {
	case kind == "command":
		g.program("a program", `go build -C "$ABL_SRC" -o app.bin `+name+` && "$ABL_SRC/app.bin"`, source, "")
	case commands > 2 && !g.deployed():
		g.ask("app.kind", "the program has several commands, and one is a server ("+from.String()+")",
			fact("app.kind", kind, from), fact("app.kind", "command", source))
		g.ask("app.command", "the program has several commands", candidate("go run "+name, source))
	default:
		g.server(kind, from)
		g.try(strings.TrimSpace("go build -o app.bin "+name+" && ./app.bin "+g.imageArgs()), source)
	}
}

// deployed reports whether the user, an image, a compose file or a Procfile shows that the app is a
// server.
func (p *project) deployed() bool {
	return p.wish.Kind != "" || slices.ContainsFunc(p.ports, p.contained) ||
		slices.ContainsFunc(p.servers, func(f Fact) bool { return f.From.File == p.at("Procfile") })
}

// imageArgs returns the arguments with which the image starts the program, "" if they name files.
func (g *golang) imageArgs() string {
	if g.image == nil {
		return ""
	}
	words := slices.Concat(g.image.entry.exec(), g.image.cmd.exec())
	if len(words) < 2 || strings.HasSuffix(words[0], ".sh") || strings.ContainsAny(strings.Join(words[1:], ""), "/$") {
		return ""
	}
	return commandLine(words[1:])
}

// kindOf returns the kind of a program, the place that shows it, and the number of its commands. It
// records the ports of a server.
func (g *golang) kindOf(pkg *goPackage) (kind string, from Source, commands int) {
	kind = "command"
	for _, file := range g.reach(pkg.dir) {
		text := g.code(file)
		found, at := g.scan(file, text, goSigns)
		if found != "" && (kind == "command" || kind == "tcp" && found == "http") {
			kind, from = found, at
		}
		if strings.Contains(text, "gin.") && match(ginRun, text) {
			g.readsPort(find(file, text, ginRun))
			g.listens("8080", find(file, text, ginRun))
		}
		commands += len(compile(goCommand).FindAllString(text, -1))
		g.route(file, text)
	}
	return kind, from, commands
}

// isAbout reports whether the only server of a module is the app: another program in the root is more likely, and
// so are all outside of cmd, unless an image runs a server.
func (g *golang) isAbout(server *goPackage, mains []*goPackage) bool {
	root := slices.ContainsFunc(mains, func(pkg *goPackage) bool { return pkg.dir == "." })
	return g.wish.Kind != "" || server.dir == "." || !root && (strings.HasPrefix(server.dir, "cmd/") || g.deployed())
}

// several asks which program is the app, unless only one of them is a server.
func (g *golang) several(mains []*goPackage) {
	var servers []*goPackage
	var others []string
	var choices, ports []Fact
	for _, pkg := range mains {
		trial := golang{project: newProject(g.folder, Wish{}), module: g.module, packages: g.packages}
		trial.main(pkg)
		for _, s := range trial.starts {
			choices = append(choices, candidate(s.command, s.from))
		}
		choices = append(choices, trial.commands...)
		if len(trial.starts) > 0 {
			servers = append(servers, pkg)
		} else {
			others = append(others, pkg.main)
		}
		for _, f := range trial.ports {
			if !slices.Contains(ports, f) {
				ports = append(ports, f)
			}
		}
	}
	if len(servers) == 1 && g.isAbout(servers[0], mains) {
		g.main(servers[0])
		g.say("%s is the app, because it is the only server; other programs: %s", servers[0].main,
			strings.Join(others, ", "))
		return
	}
	if len(servers) == 1 {
		g.ask("app.kind", servers[0].main+" is a server, and the other programs are not")
	}
	g.ask("app.command", "the module has several programs", choices...)
	switch len(servers) {
	case 0:
		g.program("a program", "", Source{mains[0].main, "package main"}, "")
		return
	case 1:
		g.noServer()
		return
	}
	kind, from, _ := g.kindOf(servers[0])
	g.server(kind, from)
	g.findings.ports = nil
	g.ask("app.port", "each program has its own port", ports...)
}
