package detect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
)

// manifest is a package.json.
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
	Workspaces      any               `json:"workspaces"`
}

// script returns a script that does something: what npm init writes for tests fails always.
func (m manifest) script(name string) string {
	if s := m.Scripts[name]; !strings.Contains(s, "no test specified") {
		return s
	}
	return ""
}

var scriptCall = lazyregexp.New(`(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?([\w:-]+)|(?:npm-run-all|run-s` +
	`|run-p)((?:\s+[\w:-]+)+)`)

// whole puts the scripts that a script runs in their place, down to a depth.
func (m manifest) whole(text string, depth int) string {
	if depth == 0 {
		return text
	}
	return scriptCall().ReplaceAllStringFunc(text, func(call string) string {
		part := scriptCall().FindStringSubmatch(call)
		var all []string
		for _, name := range strings.Fields(part[1] + part[2]) {
			if inner := m.script(name); inner != "" && inner != text {
				all = append(all, m.whole(inner, depth-1))
			}
		}
		if len(all) == 0 {
			return call
		}
		if program, _, _ := strings.Cut(call, " "); program != "npm" && part[2] == "" {
			all = append([]string{program + " "}, all...) // it is called all the same
		}
		return strings.Join(all, " && ")
	})
}

// depends returns where the package.json names a package, or "".
func (m manifest) depends(name string) string {
	switch {
	case m.Dependencies[name] != "":
		return "dependencies." + name
	case m.DevDependencies[name] != "":
		return "devDependencies." + name
	}
	return ""
}

func (p *project) inPackage(place string) Source { return p.src("package.json", place) }

func loadNode(p *project) {
	if err := json.Unmarshal([]byte(p.text("package.json")), &p.node); err != nil {
		p.say("%s cannot be read: %v", p.at("package.json"), err)
	}
	p.nodeVersion()
	p.nodePrepare(false)
}

// frameworks are packages with which a program answers HTTP.
var frameworks = []string{
	"express", "fastify", "koa", "@hapi/hapi", "@nestjs/core", "hono", "next", "nuxt", "polka", "restify",
	"@adonisjs/core",
	"elysia", "@sveltejs/kit", "astro", "@remix-run/serve", "@remix-run/node", "react-scripts", "@angular/cli",
	"gatsby",
	"@feathersjs/express", "apollo-server", "@apollo/server", "json-server", "@strapi/strapi", "h3",
	"@react-router/serve",
	"socket.io", "webpack-dev-server", "@11ty/eleventy", "@hono/node-server",
}

// pages says whether a framework makes pages: those are often development dependencies.
func pages(name string) bool {
	return slices.Contains([]string{"next", "nuxt", "@sveltejs/kit", "astro", "react-scripts", "@angular/cli", "gatsby",
		"@11ty/eleventy",
		"webpack-dev-server"}, name)
}

// devServer is a program that a script starts and that needs flags to be reached from outside.
type devServer struct {
	name  *regexp.Regexp
	port  int
	flags string // behind the command
	env   map[string]string
}

func devServers() []devServer {
	vite := map[string]string{"__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS": "app"}
	word := func(s string) *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s/;&|])` + s + `(?:\s|$)`) }
	return []devServer{
		{word(`vite preview`), 4173, "--host 0.0.0.0", vite},
		{word(`vite build`), 0, "", nil},
		{word(`vite`), 5173, "--host 0.0.0.0", vite},
		{word(`astro (?:dev|preview)`), 4321, "--host 0.0.0.0", vite},
		{word(`ng serve`), 4200, "--host 0.0.0.0", nil},
		{word(`nuxt dev`), 3000, "--host 0.0.0.0", nil},
		{word(`next (?:start|dev)`), 3000, "", nil},
		{word(`react-scripts start`), 3000, "", nil},
		{word(`gatsby develop`), 8000, "-H 0.0.0.0", nil},
		{word(`remix-serve`), 3000, "", nil},
		{word(`node (?:\./)?\.output/server/index\.mjs`), 3000, "", nil}, // of Nuxt and Nitro
		{word(`json-server`), 3000, "--host 0.0.0.0", nil},
	}
}

func readNode(p *project) {
	m := p.node
	for _, name := range frameworks {
		if at := m.depends(name); at != "" && (!strings.HasPrefix(at, "dev") || pages(name)) {
			p.server("http", p.inPackage(at))
			break
		}
	}
	for _, name := range []string{"start", "dev", "serve", "develop", "start:dev"} {
		if text := m.script(name); text != "" {
			p.nodeScript(name, m.whole(text, 3))
		}
	}
	p.nodeSources()
	if len(p.starts) == 0 && len(p.serves) > 0 {
		p.nodeMain()
	}
	p.nodePrograms()
	p.nodeChecks()
}

// nodeMain makes a start of a file that listens.
func (p *project) nodeMain() {
	all := []string{p.node.Main}
	for _, dir := range []string{"", "src/"} {
		for _, stem := range []string{"server", "index", "app", "main"} {
			for _, ext := range []string{".js", ".mjs", ".cjs"} {
				all = append(all, dir+stem+ext)
			}
		}
	}
	for _, file := range all {
		if file != "" && p.has(file) && listening().MatchString(p.text(file)) {
			p.try(start{command: "node " + path.Clean(file), from: p.src(file, "")})
			return
		}
	}
}

// nodeScript makes a start of a script.
func (p *project) nodeScript(name, text string) {
	from := p.inPackage("scripts." + name)
	s := start{command: "npm run " + name, from: from, port: portIn(text)}
	if name == "start" {
		s.command = "npm start"
	}
	for _, d := range devServers() {
		if !d.name.MatchString(text) || d.port == 0 {
			continue
		}
		p.server("http", from)
		s.port = cmp.Or(s.port, p.configuredPort(), d.port)
		if d.flags != "" && !strings.Contains(text, "--host 0.0.0.0") && !strings.Contains(text, "--host=0.0.0.0") {
			s.command += " -- " + d.flags
		}
		for name, value := range d.env {
			s.env = append(s.env, Fact{Key: "app.env." + name, Value: value, From: from, Note: "the tests ask for the host app"})
		}
		break
	}
	if other := p.foreign(text); other != "" {
		p.missing(from, other)
		return
	}
	if !p.builds(&s, text, name) {
		return
	}
	s.command = p.withManager(text, s.command)
	p.try(s)
}

// missing asks for a start command because the one of the repository needs a program that is not
// in the app's container.
func (p *project) missing(from Source, program string) {
	p.ask("app.command", fmt.Sprintf("%s runs %s, which is not in the app's container (docs/toolchains.md)", from,
		program))
}

var builtFile = lazyregexp.New(`(?:^|[\s"'=])(?:\./)?((?:dist|build|out|lib|\.next|\.output` +
	`|public/build)(?:/[\w./-]*)?)`)

var started = lazyregexp.New(`(?:^|[\s;&|])(?:node|nodemon|tsx|ts-node)\s+(?:watch\s+)?(?:--?\S+\s+)*([\w./-]+)`)

// builds puts the build before a start of files that the repository does not contain. It returns
// false if nothing in the repository makes them.
func (p *project) builds(s *start, text, script string) bool {
	need := ""
	if m := builtFile().FindStringSubmatch(text); m != nil && !p.has(m[1]) && !p.has(m[1]+".js") && !p.hasFolder(m[1]) {
		need = m[1]
	}
	for program, folder := range map[string]string{"next start": ".next", "vite preview": "dist",
		"astro preview": "dist", "remix-serve": "build"} {
		if regexp.MustCompile(`(?:^|\s)` + program).MatchString(text) {
			need = folder
		}
	}
	for _, m := range started().FindAllStringSubmatch(text, -1) {
		if need == "" && !p.has(m[1]) && !p.has(m[1]+".js") && !p.has(m[1]+".ts") && !p.has(path.Join(m[1], "index.js")) {
			p.say("%s runs %s, which is not in the repository", cmp.Or(s.from.String(), script), m[1])
			return false
		}
	}
	if need == "" || p.node.script("pre"+script) != "" || strings.Contains(text, "build") && strings.Contains(text, "&&") {
		return true
	}
	if p.node.script("build") == "" {
		p.say("%s starts %s, which is not in the repository, and no script builds it", s.from, need)
		return false
	}
	s.command = "npm run build && " + s.command
	s.note = "scripts.build makes " + need
	p.makes(strings.Split(need, "/")[0])
	return true
}

// nodeProgram returns a command of an image or a Procfile as it is run in the source.
func (p *project) nodeProgram(name string, words []string) (string, bool) {
	m := p.node
	rest := words[1:]
	switch {
	case slices.Contains([]string{"npm", "yarn", "pnpm", "bun"}, name) && len(rest) > 0:
		if rest[0] == "run" && len(rest) > 1 {
			rest = rest[1:]
		}
		text := m.whole(m.script(rest[0]), 3)
		if text == "" || p.foreign(text) != "" {
			return "", false
		}
		s := start{command: "npm run " + strings.Join(rest, " ")}
		if rest[0] == "start" {
			s.command = "npm " + strings.Join(rest, " ")
		}
		ok := p.builds(&s, text, rest[0])
		return p.withManager(text, s.command), ok
	case name == "node" && len(rest) > 0:
		file := rest[len(rest)-1]
		for _, word := range rest {
			if !strings.HasPrefix(word, "-") {
				file = word
				break
			}
		}
		if p.has(file) || p.has(file+".js") || p.has(path.Join(file, "index.js")) {
			return strings.Join(words, " "), true
		}
		s := start{command: strings.Join(words, " ")}
		return s.command, builtFile().MatchString(" "+file) && m.script("build") != "" && p.builds(&s, file, "")
	}
	return "", false
}

var (
	listening = lazyregexp.New(`\.listen\s*\(|\bserve\s*\(\s*\{|Deno\.serve|Bun\.serve|export default \{[^}]*\bfetch\b`)
	envPort   = lazyregexp.New(`(?:process\.env|Bun\.env|import\.meta\.env)(?:\.PORT\b|\[['"]PORT['"]\])`)
	orPort    = lazyregexp.New(`(?:process\.env|Bun\.env)(?:\.PORT\b|\[['"]PORT['"]\])[\s),]*(?:\|\|` +
		`|\?\?)\s*\(?['"]?(\d{2,5})|\bPORT\s*=\s*['"]?(\d{2,5})['"]?\s*[,}].*process\.env` +
		`|get(?:<\w+>)?\(\s*['"]PORT['"]\s*,\s*['"]?(\d{2,5})`)
	callPort = lazyregexp.New(`\.listen\s*\(\s*(?:\{[^}]*?\bport\s*:\s*)?(\d{2,5})\b` +
		`|\bserve\s*\(\s*\{[^}]*?\bport\s*:\s*(\d{2,5})\b|export default \{[^}]*?\bport\s*:\s*(\d{2,5})\b`)
	namedPort = lazyregexp.New(`(?i)\bport\s*[:=]\s*['"]?(\d{2,5})\b`)
	tcpServer = lazyregexp.New(`\bnet\.createServer\b|from ['"](?:node:)?net['"]|require\(['"](?:node:)?net['"]\)`)
	webServer = lazyregexp.New(`\bhttps?\.createServer\b|\bcreateServer\b.*http|(?:from` +
		`|require\()\s*['"](?:node:)?https?['"]|Bun\.serve`)
	hostLocal = lazyregexp.New(`\.listen\s*\([^)]*['"](?:127\.0\.0\.1|localhost)['"]` +
		`|\bhost(?:name)?\s*:\s*['"](?:127\.0\.0\.1|localhost)['"]`)
)

// nodeSources looks for servers and their ports in the source.
func (p *project) nodeSources() {
	for _, file := range p.sources(".js", ".mjs", ".cjs", ".ts", ".mts") {
		text := p.tree.text(file, maxSource)
		if !listening().MatchString(text) && !envPort().MatchString(text) && !orPort().MatchString(text) {
			continue
		}
		if strings.Contains(path.Base(file), ".config.") {
			continue
		}
		p.portsIn(file, text, orPort(), envPort(), callPort())
		if !listening().MatchString(text) {
			continue
		}
		if len(p.ports) == 0 {
			p.portsIn(file, text, namedPort())
		}
		switch {
		case webServer().MatchString(text):
			p.server("http", Source{file, lineOf(text, webServer())})
		case tcpServer().MatchString(text):
			p.server("tcp", Source{file, lineOf(text, tcpServer())})
		}
		if hostLocal().MatchString(text) {
			p.say("%s:%s listens on 127.0.0.1 only: abl's tests do not reach it until it listens on 0.0.0.0", file,
				lineOf(text, hostLocal()))
		}
	}
	p.routes(".js", ".mjs", ".cjs", ".ts", ".mts")
}

// portsIn records the ports that expressions find in a text: one with a group is a number, one
// without says that the program reads PORT.
func (p *project) portsIn(file, text string, all ...*regexp.Regexp) {
	for _, expr := range all {
		for _, at := range expr.FindAllStringSubmatchIndex(text, 5) {
			from := Source{file, line(1 + strings.Count(text[:at[0]], "\n"))}
			if expr.NumSubexp() == 0 {
				p.set("PORT", "PORT", from)
				continue
			}
			for g := 2; g < len(at); g += 2 {
				if at[g] >= 0 {
					n, _ := strconv.Atoi(text[at[g]:at[g+1]])
					p.listens(n, from)
				}
			}
		}
	}
}

func lineOf(text string, expr *regexp.Regexp) string {
	if at := expr.FindStringIndex(text); at != nil {
		return line(1 + strings.Count(text[:at[0]], "\n"))
	}
	return ""
}

var ready = lazyregexp.New("[\"'`(]((?:/api(?:/v\\d+)?)?/(?:_?healthz?|_?health-?check|healthcheck|readyz?|livez|up))/?[\"'`)]")

// routes looks for the route of a health check.
func (p *project) routes(endings ...string) {
	for _, file := range p.sources(endings...) {
		text := p.tree.text(file, maxSource)
		if m := ready().FindStringSubmatchIndex(text); m != nil {
			p.set("app.ready.path", text[m[2]:m[3]], Source{file, line(1 + strings.Count(text[:m[0]], "\n"))})
			return
		}
	}
}

var viteConfigs = []string{"vite.config.ts", "vite.config.js", "vite.config.mts", "vite.config.mjs",
	"astro.config.mjs", "nuxt.config.ts"}

// configuredPort is the port in the configuration of a development server.
func (p *project) configuredPort() int {
	text := p.text(p.first(viteConfigs...))
	if m := regexp.MustCompile(`server\s*:\s*\{[^}]*?\bport\s*:\s*(\d{2,5})`).FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}
