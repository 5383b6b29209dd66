package detect

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// manifest is the part of a package.json that abl reads.
type manifest struct {
	Name            string            `json:"name"`
	Main            string            `json:"main"`
	Module          string            `json:"module"`
	Scripts         map[string]string `json:"scripts"`
	Bin             any               `json:"bin"`
	Exports         any               `json:"exports"`
	Engines         map[string]string `json:"engines"`
	PackageManager  string            `json:"packageManager"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
}

// script returns a script. The test that npm init writes always fails, so it counts as missing.
func (m manifest) script(name string) string {
	if s := m.Scripts[name]; !strings.Contains(s, "no test specified") {
		return s
	}
	return ""
}

const scriptCall = `(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?([\w:-]+)|(?:npm-run-all|run-s` +
	`|run-p)((?:\s+[\w:-]+)+)`

// expand replaces the calls of scripts in a script with these scripts, up to a depth.
func (m manifest) expand(text string, depth int) string {
	if depth == 0 {
		return text
	}
	return compile(scriptCall).ReplaceAllStringFunc(text, func(call string) string {
		part := compile(scriptCall).FindStringSubmatch(call)
		var all []string
		for _, name := range strings.Fields(part[1] + part[2]) {
			if inner := m.script(name); inner != "" && inner != text {
				all = append(all, m.expand(inner, depth-1))
			}
		}
		if len(all) == 0 {
			return call
		}
		if program, _, _ := strings.Cut(call, " "); program != "npm" && part[2] == "" {
			all = append([]string{program + " "}, all...) // the script needs this program, too
		}
		return strings.Join(all, " && ")
	})
}

// node reads the projects of Node.js.
type node struct {
	*project
	manifest manifest
	manager  manager
	started  []string // files without an ending that scripts start
}

func (n *node) src(place string) Source { return n.project.src("package.json", place) }

func (n *node) load() {
	m := &n.manifest
	n.decode("package.json", m)
	for name := range m.DevDependencies {
		n.deps[name] = n.src("devDependencies." + name)
	}
	for name := range m.Dependencies {
		n.deps[name] = n.src("dependencies." + name)
	}
	wants := n.pinned("(?:nodejs|node)", ".nvmrc .node-version")
	wants = append(wants, wanted{m.Engines["node"], n.src("engines.node")})
	n.choose("node", append(wants, n.fromImage("node")...))
	n.manager = n.findManager()
	n.prepare(false)
}

// frameworks are the packages of HTTP servers. The generators of pages among them are often
// development dependencies.
const (
	frameworks = "express fastify koa @hapi/hapi @nestjs/core hono next nuxt polka restify @adonisjs/core elysia " +
		"@sveltejs/kit astro @remix-run/serve @remix-run/node react-scripts @angular/cli gatsby @feathersjs/express " +
		"apollo-server @apollo/server json-server @strapi/strapi h3 @react-router/serve socket.io webpack-dev-server " +
		"@11ty/eleventy @hono/node-server"
	generators = "next nuxt @sveltejs/kit astro react-scripts @angular/cli gatsby @11ty/eleventy webpack-dev-server"
)

// devServer is a server that a script starts, with what it needs to accept requests from other
// containers.
type devServer struct {
	command string // a regular expression
	port    int    // its default, 0 for a command that is not a server
	flags   string // options to append
	vite    bool   // it only accepts known host names
}

var devServers = []devServer{
	{command: `vite preview`, port: 4173, flags: "--host 0.0.0.0", vite: true},
	{command: `vite build`},
	{command: `vite`, port: 5173, flags: "--host 0.0.0.0", vite: true},
	{command: `astro (?:dev|preview)`, port: 4321, flags: "--host 0.0.0.0", vite: true},
	{command: `ng serve`, port: 4200, flags: "--host 0.0.0.0"},
	{command: `nuxt dev`, port: 3000, flags: "--host 0.0.0.0"},
	{command: `next (?:start|dev)`, port: 3000},
	{command: `react-scripts start`, port: 3000},
	{command: `gatsby develop`, port: 8000, flags: "-H 0.0.0.0"},
	{command: `remix-serve`, port: 3000},
	{command: `node (?:\./)?\.output/server/index\.mjs`, port: 3000}, // Nuxt and Nitro
	{command: `fastify start`, port: 3000, flags: "--address 0.0.0.0"},
	{command: `json-server`, port: 3000, flags: "--host 0.0.0.0"},
}

// calls reports whether a script calls a program, which is a regular expression.
func calls(script, program string) bool {
	return match(`(?:^|[\s/;&|])`+program+`(?:\s|$)`, script)
}

func (n *node) find() {
	n.depends(frameworks, func(name string, from Source) bool {
		return !strings.HasPrefix(from.Place, "dev") || slices.Contains(fields(generators), name)
	})
	for name := range strings.FieldsSeq("start dev serve develop start:dev") {
		if text := n.manifest.script(name); text != "" {
			n.scriptStart(name, n.manifest.expand(text, 3))
		}
	}
	n.scanSources()
	if len(n.starts) == 0 && len(n.servers) > 0 {
		n.mainStart()
	}
	n.findPrograms()
	n.findChecks()
}

// mainStart makes a start of a file that listens.
func (n *node) mainStart() {
	for _, file := range fields(n.manifest.Main + " server.js server.mjs server.cjs index.js index.mjs index.cjs " +
		"app.js app.mjs app.cjs main.js main.mjs main.cjs src/server.js src/server.mjs src/server.cjs src/index.js " +
		"src/index.mjs src/index.cjs src/app.js src/app.mjs src/app.cjs src/main.js src/main.mjs src/main.cjs") {
		if match(listening, n.text(file)) {
			n.try("node "+path.Clean(file), n.project.src(file, ""))
			return
		}
	}
}

// scriptStart makes a start of a script.
func (n *node) scriptStart(name, text string) {
	from := n.src("scripts." + name)
	s := start{command: "npm run " + name, from: from, port: portIn(text)}
	if name == "start" {
		s.command = "npm start"
	}
	i := slices.IndexFunc(devServers, func(d devServer) bool { return calls(text, d.command) })
	if i >= 0 && devServers[i].port > 0 {
		d := devServers[i]
		n.server("http", from)
		s.port = cmp.Or(s.port, n.configuredPort(), d.port)
		if d.flags != "" && !strings.Contains(text, "0.0.0.0") {
			s.command += " -- " + d.flags
		}
		if d.vite {
			s.env = []Fact{{"app.env.__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS", "app", from, "the tests use the host name app"}}
		}
	}
	if other := n.missing(text); other != "" {
		n.ask("app.command", fmt.Sprintf("%s runs %s, which is not in the app's container (docs/toolchains.md)", from, other))
		return
	}
	for _, m := range captures(startedFile, text) {
		if n.has(m[1]) && path.Ext(m[1]) == "" { // such as bin/www
			n.started = append(n.started, n.at(m[1]))
		}
	}
	if n.build(&s, text, name) {
		s.command = n.withManager(text, s.command)
		n.addStart(s)
	}
}

const (
	builtFile = `(?:^|[\s"'=])(?:\./)?((?:dist|build|out|lib|\.next|\.output` +
		`|public/build)(?:/[\w./-]*)?)`
	startedFile = `(?:^|[\s;&|])(?:node|nodemon|tsx|ts-node)\s+(?:watch\s+)?(?:--?\S+\s+)*([\w./-]+)`
)

// builtBy are the folders that a build makes for these commands.
var builtBy = map[string]string{
	"next start": ".next", "vite preview": "dist", "astro preview": "dist", "remix-serve": "build",
}

// build adds the build to a start command whose files are not in the repository. It returns false if
// no script builds them.
func (n *node) build(s *start, text, script string) bool {
	need := capture(builtFile, text)
	if n.has(need) || n.has(need+".js") || n.hasFolder(need) {
		need = ""
	}
	for program, folder := range builtBy {
		if calls(text, program) {
			need = folder
		}
	}
	for _, m := range captures(startedFile, text) {
		if need == "" && !n.hasModule(m[1]) && !n.has(m[1]+".ts") {
			n.say("%s runs %s, which is not in the repository", cmp.Or(s.from.String(), script), m[1])
			return false
		}
		need = cmp.Or(need, n.unbuilt(m[1]))
	}
	builds := strings.Contains(text, "build") && strings.Contains(text, "&&")
	if need == "" || n.manifest.script("pre"+script) != "" || builds {
		return true
	}
	if n.manifest.script("build") == "" {
		n.say("%s starts %s, which is not in the repository, and no script builds it", s.from, need)
		return false
	}
	s.command = "npm run build && " + s.command
	s.note = "scripts.build creates " + need
	n.creates(strings.Split(need, "/")[0])
	return true
}

const importedFile = `(?:\brequire(?:\.resolve)?\(|\bfrom\s|\bimport\b\s*\(?)\s*['"](\.{1,2}/[\w./-]+)['"]`

// unbuilt returns a file of a build that a file of the repository imports, "" for none.
func (n *node) unbuilt(file string) string {
	for _, m := range captures(importedFile, n.code(n.at(n.module(file)))) {
		inner := path.Join(path.Dir(file), m[1])
		if match(builtFile, inner) && !n.hasFolder(strings.Split(inner, "/")[0]) {
			return inner
		}
	}
	return ""
}

func (n *node) command(name string, words []string) string {
	args := words[1:]
	if len(args) == 0 {
		return ""
	}
	switch name {
	case "npm", "yarn", "pnpm", "bun":
		if args[0] == "run" && len(args) > 1 {
			args = args[1:]
		}
		text := n.manifest.expand(n.manifest.script(args[0]), 3)
		s := start{command: "npm run " + strings.Join(args, " ")}
		if args[0] == "start" {
			s.command = "npm " + strings.Join(args, " ")
		}
		if text != "" && n.missing(text) == "" && n.build(&s, text, args[0]) {
			return n.withManager(text, s.command)
		}
	case "node":
		file := args[max(0, slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }))]
		s := start{command: strings.Join(words, " ")}
		built := match(builtFile, " "+file) && n.manifest.script("build") != ""
		if n.hasModule(file) || built && n.build(&s, file, "") {
			return s.command
		}
	}
	return ""
}

const readsPORT = `(?:process\.env|Bun\.env|import\.meta\.env)(?:\.PORT\b|\[['"]PORT['"]\])`

var (
	listening = `\.listen\s*\(|\bserve\s*\(\s*\{|Deno\.serve|Bun\.serve|export default \{[^}]*\bfetch\b`
	namedPort = `(?i)\bport\s*[:=]\s*['"]?(\d{2,5})\b`
	nodeSigns = signs{
		ports: []string{
			readsPORT + `[\s),]*(?:(?:\|\||\?\?)\s*process\.env\.\w+\s*)*(?:\|\||\?\?)\s*\(?['"]?(\d{2,5})` +
				`|\bPORT\s*=\s*['"]?(\d{2,5})['"]?\s*[,}].*process\.env` +
				`|get(?:<\w+>)?\(\s*['"]PORT['"]\s*,\s*['"]?(\d{2,5})`,
			readsPORT,
			`\.listen\s*\(\s*(?:\{[^}]*?\bport\s*:\s*)?(\d{2,5})\b` +
				`|\bserve\s*\(\s*\{[^}]*?\bport\s*:\s*(\d{2,5})\b|export default \{[^}]*?\bport\s*:\s*(\d{2,5})\b`,
		},
		http: `\bhttps?\.createServer\b|\bcreateServer\b.*http` +
			`|(?:from|require\()\s*['"](?:node:)?https?['"]|Bun\.serve`,
		tcp: `\bnet\.createServer\b|(?:from |require\()['"](?:node:)?net['"]`,
		local: `\.listen\s*\([^)]*['"](?:127\.0\.0\.1|localhost)['"]` +
			`|\bhost(?:name)?\s*:\s*['"](?:127\.0\.0\.1|localhost)['"]`,
	}
)

// scanSources looks for servers and their ports in the sources.
func (n *node) scanSources() {
	for _, file := range append(n.sources("node"), n.started...) {
		text := n.code(file)
		n.readsEnv = n.readsEnv || match(`\bloadEnvFile\(\s*\)`, text)
		if slices.Contains(fields(".tsx .jsx .vue .svelte"), path.Ext(file)) {
			continue // a page
		}
		switch configuration := strings.Contains(path.Base(file), ".config."); {
		case configuration:
		case !match(listening, text):
			n.matches(file, text, nodeSigns.ports[:2]...)
		default:
			if kind, from := n.scan(file, text, nodeSigns); kind != "" {
				n.server(kind, from)
			}
			if len(n.ports) == 0 {
				n.matches(file, text, namedPort)
			}
		}
		n.route(file, text)
	}
}

// configuredPort returns the port in the configuration of a development server, 0 for none.
func (n *node) configuredPort() int {
	text := n.text(n.first(
		"vite.config.ts vite.config.js vite.config.mts vite.config.mjs astro.config.mjs nuxt.config.ts"))
	return atoi(capture(`server\s*:\s*\{[^}]*?\bport\s*:\s*(\d{2,5})`, text))
}

// bins returns the programs of the package.json: their files by name.
func (n *node) bins() map[string]string {
	files := map[string]string{}
	switch bin := n.manifest.Bin.(type) {
	case string:
		files[path.Base(n.manifest.Name)] = bin
	case map[string]any:
		for name, file := range bin {
			if text, ok := file.(string); ok {
				files[name] = text
			}
		}
	}
	return files
}

// findPrograms records the programs of the package.json, or that it is a library.
func (n *node) findPrograms() {
	m := n.manifest
	files := n.bins()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, from, command, note := path.Clean(files[name]), n.src("bin."+name), "", ""
		if _, single := m.Bin.(string); single {
			from = n.src("bin")
		}
		need := n.unbuilt(file)
		if !n.has(file) {
			need = file
		}
		switch {
		case need == "":
			command = `node "$ABL_SRC/` + file + `"`
		case m.script("build") != "":
			command = `npm --prefix "$ABL_SRC" run --silent build >&2 && node "$ABL_SRC/` + file + `"`
			note = "scripts.build creates " + need
			n.creates(strings.Split(need, "/")[0])
		}
		n.program("a program", command, from, note)
	}
	if len(files) > 0 && len(n.starts) == 0 && !n.deployed() {
		n.noServer() // of a program that also listens, or of its tests
	}
	if len(files)+len(n.starts) > 0 || n.image != nil || len(n.open) > 0 && len(n.servers) > 0 {
		return
	}
	there := func(file string) bool { return file != "" && (n.hasModule(file) || m.script("build") != "") }
	place := ""
	switch {
	case there(m.Main):
		place = "main"
	case there(m.Module):
		place = "module"
	case m.Exports != nil:
		place = "exports"
	default:
		return
	}
	n.noServer() // of a part that is not a program
	n.library(n.src(place), `cd "$ABL_SRC" && node`, "tests pass code to node -e")
}

const watching = `--watch(?:All)?(?:\s|$)|ng test|(?:^|\s)-w(?:\s|$)`

// nxTarget matches a target of Nx without a project.
const nxTarget = `^(?:npx )?nx (?:run )?[a-z][\w-]*(?: +--?\S+)*$`

// hasDefaultProject reports whether Nx runs a target without a project here.
func (n *node) hasDefaultProject() bool {
	var workspace struct{ DefaultProject string }
	if n.has("nx.json") {
		n.decode("nx.json", &workspace)
	}
	return workspace.DefaultProject != "" || n.has("project.json")
}

// findChecks records the scripts that check the source. Of each kind the first usable one counts.
func (n *node) findChecks() {
	for _, c := range []struct{ name, description, scripts string }{
		{"typecheck", "type check", "typecheck type-check check-types types:check tsc"},
		{"lint", "lint", "lint"},
		{"test", "tests", "test:unit test"},
	} {
		for script := range strings.FieldsSeq(c.scripts) {
			if command := n.checkScript(script); command != "" {
				n.check(c.name, command, c.description, n.src("scripts."+script))
				break
			}
		}
	}
}

// checkScript returns the command that runs a script, "" if the Builder cannot run it.
func (n *node) checkScript(script string) string {
	text, from, command := n.manifest.script(script), n.src("scripts."+script), "npm run "+script
	if script == "test" {
		command = "npm test"
	}
	if match(watching, text) {
		n.say("%s watches files and never ends, so the Builder cannot use it", from)
		return ""
	}
	if other := n.missing(text); other != "" {
		n.say("%s runs %s, which is not in the Builder's container", from, other)
		return ""
	}
	if match(nxTarget, text) && !n.hasDefaultProject() {
		n.say("%s names no project, and the Nx workspace has no default one", from)
		return ""
	}
	switch {
	case text == "":
		return ""
	case strings.Contains(text, "react-scripts test"):
		command = "CI=true " + command // without CI it watches files
	}
	return n.withManager(text, command)
}
