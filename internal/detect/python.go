package detect

import (
	"path"
	"slices"
	"strings"
)

// python reads the projects of pip, uv, Poetry and Pipenv.
type python struct {
	*project
	pyproject pyproject
	venv      string // the folder of the programs that app.prepare installs, "" without one
	installed bool   // app.prepare also installs the project itself
	extras    string // the extra of the project that its tests need, "[test]"
	group     string // the dependency group that its tests need, for pip
}

func (p *python) load() {
	p.decode("pyproject.toml", &p.pyproject)
	p.readNeeds()
	p.prepare()
	wants := p.pinned("python", ".python-version")
	runtime := strings.TrimPrefix(strings.TrimSpace(p.text("runtime.txt")), "python-")
	poetry, _ := p.pyproject.Tool.Poetry.Dependencies["python"].(string)
	wants = append(wants,
		wanted{runtime, p.src("runtime.txt", "")},
		wanted{p.pyproject.Project.RequiresPython, p.src("pyproject.toml", "project.requires-python")},
		wanted{poetry, p.src("pyproject.toml", "tool.poetry.dependencies.python")})
	p.choose("python", append(wants, p.fromImage("python")...))
	if p.venv != "" && !p.asked("toolchain.python") {
		p.note("toolchain.python", "3.13", p.values["app.prepare"].From, "no file names a version")
	}
}

// interpreter returns the Python with the project's packages.
func (p *python) interpreter() string {
	if p.venv != "" {
		return p.venv + "python"
	}
	return "python3"
}

// pythonTools are the programs that packages install.
const pythonTools = "gunicorn uvicorn hypercorn daphne flask fastapi streamlit celery waitress-serve alembic granian"

func (p *python) command(name string, arguments []string) string {
	rest := strings.Join(arguments[1:], " ")
	_, needed := p.deps[name]
	switch {
	case slices.Contains(fields("uv poetry pipenv"), name):
		if len(arguments) > 2 && arguments[1] == "run" {
			return p.command(path.Base(arguments[2]), arguments[2:])
		}
	case name == "python" || name == "python3":
		if rest == "manage.py runserver" {
			rest += " 0.0.0.0:8000"
		}
		if rest != "" && (strings.HasPrefix(rest, "-") || p.has(arguments[1])) {
			return p.interpreter() + " " + rest
		}
	case slices.Contains(fields(pythonTools), name) && (needed || name == "flask" || name == "waitress-serve"):
		if path, found := p.pathOf(capture(moduleArgument, rest)); found {
			return path + p.venv + strings.TrimSpace(name+" "+p.reachable(name, rest))
		}
	}
	return ""
}

const moduleArgument = `(?:^|\s)([A-Za-z_][\w.]*):[A-Za-z_]\w*|(?:-A|--app)[= ]([A-Za-z_][\w.]*)`

// pathOf returns the setting of PYTHONPATH with which Python finds a module, "" if it finds it without one: an image may
// have copied its folder elsewhere. It reports whether the repository has the module, also for an empty name.
func (p *python) pathOf(module string) (setting string, found bool) {
	if name := strings.ReplaceAll(module, ".", "/"); name != "" && !p.has(module) {
		all := append([]string{p.at(name + ".py"), p.at(name + "/__init__.py")}, p.sources("python")...)
		for _, file := range all {
			inner := "/" + strings.TrimSuffix(strings.TrimSuffix(p.inner(file), ".py"), "/__init__")
			before, ok := strings.CutSuffix(inner, "/"+name)
			dir := strings.Trim(before, "/")
			inPackage := p.has(path.Join(dir, "__init__.py")) && !strings.Contains(name, "/")
			if ok && p.tree.Has(file) && !inPackage {
				if dir == "" {
					return "", true
				}
				return "PYTHONPATH=" + dir + " ", true
			}
		}
		return "", false
	}
	return "", true
}

const gunicornPort = `(?m)^bind\s*=.*:(\d{2,5})`

// gunicornBinds reports whether the configuration of Gunicorn has an address. It records its port.
func (p *python) gunicornBinds(args string) bool {
	named := capture(`(?:-c|--config)[ =](?:file:)?(\S+)`, args)
	file := named
	if named == "" {
		file = p.first("gunicorn.conf.py")
	}
	text := p.text(file)
	p.matches(p.at(file), text, gunicornPort, pyEnvPort)
	return capture(`(?m)^(bind)\s*=`, text) != "" || named != "" && text == ""
}

// reachable adds the options without which a server only listens on 127.0.0.1.
func (p *python) reachable(name, args string) string {
	switch has := func(options string) bool {
		return slices.ContainsFunc(fields(options), func(o string) bool { return strings.Contains(" "+args, " "+o) })
	}; {
	case name == "gunicorn" && !has("-b --bind") && !p.gunicornBinds(args):
		return "--bind 0.0.0.0:${PORT:-8000} " + args
	case name == "uvicorn" && !has("--host --uds"):
		return args + " --host 0.0.0.0"
	case name == "flask" && strings.Contains(" "+args+" ", " run ") && !has("--host -h"):
		return args + " --host 0.0.0.0"
	case name == "hypercorn" && !has("-b --bind"):
		return "--bind 0.0.0.0:8000 " + args
	}
	return args
}

const pythonFrameworks = "flask fastapi django starlette aiohttp tornado sanic bottle falcon quart litestar pyramid " +
	"streamlit djangorestframework gradio robyn cherrypy"

func (p *python) find() {
	p.depends(pythonFrameworks, func(_ string, from Source) bool {
		return !strings.Contains(from.Place, "dev") && !strings.Contains(from.Place, "test")
	})
	p.django()
	for _, file := range p.sources("python") {
		p.scanSource(file, p.code(file))
		p.route(file, p.code(file))
	}
	for _, file := range p.sources("python") {
		from := find(file, p.code(file), pyFactory)
		if _, flask := p.deps["flask"]; flask && len(p.starts) == 0 && from.Place != "" {
			p.serve("flask", p.moduleOf(file), p.code(file), from)
		}
	}
	p.findPrograms()
	p.findChecks()
	if len(p.servers) > 0 {
		p.note("app.env.PYTHONUNBUFFERED", "1", Source{}, "output appears without delay")
	}
}

// isDjango reports whether manage.py is Django's: other frameworks have one, too.
func (p *python) isDjango() bool {
	return p.has("manage.py") && (p.deps["django"].File != "" || strings.Contains(p.text("manage.py"), "django"))
}

// django records how Django starts, unless its version does not run on a Python that abl has.
func (p *python) django() {
	from := p.src("manage.py", "")
	if !p.isDjango() {
		return
	}
	p.server("http", from)
	for _, file := range p.requirements() {
		if old := capture(oldDjango, p.text(file)); old != "" {
			p.forbid("app.command",
				p.at(file)+" asks for Django "+old+", which does not run on any Python that abl has (docs/toolchains.md)")
			delete(p.values, "toolchain.python")
			return
		}
	}
	run := p.interpreter() + " manage.py "
	p.findings.serve(run+"migrate --noinput && "+run+"runserver --noreload 0.0.0.0:8000",
		from)
	for _, file := range p.sources("python") {
		hosts := capture(allowedHosts, p.code(file))
		settings := path.Base(file) == "settings.py" || strings.Contains(file, "settings/")
		if settings && hosts != "" && !strings.Contains(hosts, "*") && !strings.Contains(hosts, "app") {
			p.say("%s: ALLOWED_HOSTS has to contain \"app\", the host name that the tests use",
				find(file, p.code(file), allowedHosts))
			break
		}
	}
}

var (
	oldDjango    = `(?mi)^django\s*==\s*((?:1\.|2\.|3\.[01])[\d.]*)`
	allowedHosts = `(?m)^ALLOWED_HOSTS\s*=\s*(.+)$`
	pyApp        = `(?m)^(\w+)\s*(?::\s*\w+\s*)?=\s*(FastAPI|Flask|Starlette|Litestar|Quart|Sanic` +
		`|Bottle|create_app|make_app)\(`
	pyFactory = `(?m)^def (create_app|make_app)\(`
	pyPort    = `(?:environ\.get|getenv|config|env(?:\.int)?)\(\s*['"]PORT['"]\s*,\s*` +
		`(?:default\s*=\s*)?['"]?(\d{2,5})|\bport\s*=\s*(\d{2,5})\b`
	pyEnvPort = `environ(?:\.get\(|\[)\s*['"]PORT['"]|getenv\(\s*['"]PORT['"]`
	pyMain    = `(?m)^if __name__ == ['"]__main__['"]`
	pySigns   = signs{
		ports: []string{
			pyPort,
			`\(\s*['"](?:0\.0\.0\.0|localhost|127\.0\.0\.1|)['"]\s*,\s*(\d{2,5})\s*\)`,
			pyEnvPort,
		},
		http: `HTTPServer\b|http\.server|make_server\(|web\.run_app\(`,
		tcp: `socketserver\.\w*TCPServer|asyncio\.start_server|\.create_server\(` +
			`|socket\.SOCK_STREAM[\s\S]*\.listen\(`,
	}
)

// moduleOf returns the name of the module of a source file.
func (p *python) moduleOf(file string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(p.inner(file), ".py"), "/__init__")
	if !match(`(?m)^\s*(?:from|import) src\b`, p.code(file)) { // src is not a package
		name = strings.TrimPrefix(name, "src/")
	}
	return strings.ReplaceAll(name, "/", ".")
}

// scanSource looks for the object that a server of a framework serves, and for a program that listens.
func (p *python) scanSource(file, text string) {
	m := compile(pyApp).FindStringSubmatch(text)
	if m == nil {
		p.scanServer(file, text)
		return
	}
	from, framework := find(file, text, pyApp), strings.ToLower(m[2])
	if strings.HasSuffix(framework, "_app") { // a function that makes the object
		framework = p.dependency("flask quart fastapi starlette litestar")
		if match(`celery|worker|task`, path.Base(file)) {
			return
		}
	}
	switch object := p.moduleOf(file) + ":" + m[1]; framework {
	case "":
		return
	case "flask", "quart":
		p.serve("flask", object, text, from)
	case "fastapi", "starlette", "litestar":
		p.serve("asgi", object, text, from)
	}
	p.server("http", from)
}

// serve records the start of a server for an object of a framework.
func (p *python) serve(kind, object, text string, from Source) {
	port := capture(pyPort, text)
	if port == "" && kind == "flask" {
		port = "5000"
	} else if port == "" {
		port = "8000"
	}
	module, _, _ := strings.Cut(object, ":")
	_, uvicorn := p.deps["uvicorn"]
	_, hypercorn := p.deps["hypercorn"]
	command := "uvicorn " + object + " --host 0.0.0.0 --port " + port
	switch {
	case kind == "flask":
		command = "flask --app " + object + " run --host 0.0.0.0 --port " + port
	case hypercorn && !uvicorn:
		command = "hypercorn --bind 0.0.0.0:" + port + " " + object
	}
	path, _ := p.pathOf(module)
	p.findings.serve(path+p.venv+command, from)
}

// scanServer records a program that listens without a framework.
func (p *python) scanServer(file, text string) {
	name := p.inner(file)
	listens := match(pySigns.http, text) || match(pySigns.tcp, text)
	if !listens || len(p.entryPoints()) > 0 || strings.Count(name, "/") > 1 {
		return
	}
	p.server(p.scan(file, text, pySigns))
	if from := find(file, text, pyMain); from.Place != "" {
		p.try(p.interpreter()+" "+name, from)
	}
}
