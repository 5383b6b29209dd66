package detect

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"abl/internal/lazyregexp"

	"github.com/BurntSushi/toml"
)

// pyproject is what abl reads of a pyproject.toml.
type pyproject struct {
	Project struct {
		Name                 string              `toml:"name"`
		RequiresPython       string              `toml:"requires-python"`
		Dependencies         []string            `toml:"dependencies"`
		OptionalDependencies map[string][]string `toml:"optional-dependencies"`
		Scripts              map[string]string   `toml:"scripts"`
	} `toml:"project"`
	DependencyGroups map[string][]any `toml:"dependency-groups"`
	BuildSystem      map[string]any   `toml:"build-system"`
	Tool             struct {
		Poetry *struct {
			Name         string                    `toml:"name"`
			Dependencies map[string]any            `toml:"dependencies"`
			Scripts      map[string]any            `toml:"scripts"`
			Group        map[string]map[string]any `toml:"group"`
			Dev          map[string]any            `toml:"dev-dependencies"`
		} `toml:"poetry"`
		Pytest map[string]any `toml:"pytest"`
		Ruff   map[string]any `toml:"ruff"`
		Mypy   map[string]any `toml:"mypy"`
	} `toml:"tool"`
}

// pythonProject is what the files of a Python project say together.
type pythonProject struct {
	pyproject
	needs     map[string]Source // names of packages that app.prepare installs
	programs  string            // the folder of programs that app.prepare makes, "" without one
	extras    string            // of setup.cfg, with what the tests need
	installed bool              // app.prepare installs the project itself, too
}

var requirement = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*`)

func (p *project) require(text string, from Source) {
	if name := strings.ToLower(strings.ReplaceAll(requirement().FindString(strings.TrimSpace(text)), "_",
		"-")); name != "" {
		if _, known := p.python.needs[name]; !known {
			p.python.needs[name] = from
		}
	}
}

func loadPython(p *project) {
	p.python.needs = map[string]Source{}
	if text := p.text("pyproject.toml"); text != "" {
		if _, err := toml.Decode(text, &p.python.pyproject); err != nil {
			p.say("%s cannot be read: %s", p.at("pyproject.toml"), strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
	p.pythonNeeds()
	p.pythonPrepare()
	p.pythonVersion()
}

// pythonNeeds collects the names of the packages.
func (p *project) pythonNeeds() {
	py := p.python.pyproject
	from := p.src("pyproject.toml", "project.dependencies")
	for _, text := range py.Project.Dependencies {
		p.require(text, from)
	}
	for _, group := range slices.Sorted(maps.Keys(py.DependencyGroups)) {
		if !p.has("uv.lock") {
			break // pip does not install them
		}
		for _, text := range py.DependencyGroups[group] {
			p.require(fmt.Sprint(text), p.src("pyproject.toml", "dependency-groups."+group))
		}
	}
	if poetry := py.Tool.Poetry; poetry != nil {
		tables := map[string]map[string]any{"dependencies": poetry.Dependencies, "dev-dependencies": poetry.Dev}
		for name, group := range poetry.Group {
			tables["group."+name+".dependencies"], _ = group["dependencies"].(map[string]any)
		}
		for place, table := range tables {
			for name := range table {
				p.require(name, p.src("pyproject.toml", "tool.poetry."+place))
			}
		}
	}
	for _, file := range p.requirements() {
		p.requirementsIn(file, 3)
	}
	for _, m := range regexp.MustCompile(`(?m)^"?([A-Za-z][\w.-]*)"?\s*=`).FindAllStringSubmatch(p.text("Pipfile"), -1) {
		p.require(m[1], p.src("Pipfile", ""))
	}
	for text := range strings.Lines(section(p.text("setup.cfg"), "install_requires")) {
		p.require(text, p.src("setup.cfg", "options.install_requires"))
	}
	_, options, _ := strings.Cut(p.text("setup.cfg"), "[options.extras_require]")
	for _, name := range []string{"dev", "test", "tests", "testing"} {
		if list := section(options, name); list != "" && p.python.extras == "" {
			p.python.extras = name
			for text := range strings.Lines(list) {
				p.require(text, p.src("setup.cfg", "options.extras_require."+name))
			}
		}
	}
	for _, m := range setupNeed().FindAllStringSubmatch(setupNeeds().FindString(p.text("setup.py")), -1) {
		p.require(m[1], p.src("setup.py", "install_requires"))
	}
}

var included = lazyregexp.New(`^(?:-r|--requirement)[ =]*(\S+)`)

// requirementsIn reads a file of requirements, and those that it includes.
func (p *project) requirementsIn(file string, depth int) {
	for n, text := range strings.Split(p.text(file), "\n") {
		if m := included().FindStringSubmatch(strings.TrimSpace(text)); m != nil && depth > 0 {
			p.requirementsIn(path.Join(path.Dir(file), m[1]), depth-1)
			continue
		}
		p.require(text, p.src(file, line(n+1)))
	}
}

// section returns the indented lines below a key of setup.cfg.
func section(text, key string) string {
	if m := regexp.MustCompile(`(?m)^` + key +
		`\s*=[ \t]*\n((?:[ \t]+\S.*\n|\s*\n)+)`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

var setupNeed = lazyregexp.New(`['"]([A-Za-z0-9._-]+)\s*(?:[<>=~!\[;][^'"]*)?['"]`)

var setupNeeds = lazyregexp.New(`(?s)install_requires\s*=\s*\[.*?\]`)

// requirements are the files that pip installs from.
func (p *project) requirements() (names []string) {
	for _, name := range []string{"requirements.txt", "requirements/base.txt", "requirements/dev.txt",
		"requirements-dev.txt", "dev-requirements.txt",
		"requirements-test.txt", "requirements_dev.txt"} {
		if p.has(name) && !(name == "requirements/base.txt" && strings.Contains(p.text("requirements/dev.txt"), "base.txt")) {
			names = append(names, name)
		}
	}
	return names
}

// venv is how pip gets a place of its own.
const venv = "python3 -m venv .venv && .venv/bin/pip install "

// apart installs a package manager outside of the source.
func apart(name string) string {
	return "python3 -m venv /tmp/" + name + " && /tmp/" + name + "/bin/pip install " + name + " && "
}

// pythonPrepare finds the package manager by its lock file.
func (p *project) pythonPrepare() {
	py, command, extras := p.python.pyproject, "", ""
	var from Source
	if p.python.extras != "" {
		extras = "[" + p.python.extras + "]"
	}
	for _, name := range []string{"dev", "test", "tests", "testing"} {
		if list, ok := py.Project.OptionalDependencies[name]; ok && extras == "" {
			extras = "[" + name + "]"
			for _, text := range list {
				p.require(text, p.src("pyproject.toml", "project.optional-dependencies."+name))
			}
		}
	}
	switch files := p.requirements(); {
	case p.has("uv.lock"):
		from = p.src("uv.lock", "")
		command = apart("uv") + "UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never /tmp/uv/bin/uv sync --frozen"
		if extras != "" {
			command += " --all-extras"
		}
		if _, dev := py.DependencyGroups["dev"]; len(py.DependencyGroups) > 1 || len(py.DependencyGroups) == 1 && !dev {
			command += " --all-groups"
		}
	case p.has("poetry.lock") || py.Tool.Poetry != nil && len(files) == 0:
		from = p.src(p.first("poetry.lock", "pyproject.toml"), "")
		command = apart("poetry") + "POETRY_VIRTUALENVS_IN_PROJECT=true /tmp/poetry/bin/poetry install --no-interaction"
	case p.has("Pipfile.lock") && len(files) == 0:
		from = p.src("Pipfile.lock", "")
		command = apart("pipenv") + "PIPENV_VENV_IN_PROJECT=1 /tmp/pipenv/bin/pipenv sync --dev"
	case len(files) > 0:
		from = p.src(files[0], "")
		command = venv + "-r " + strings.Join(files, " -r ")
		if py.Project.Name != "" && len(py.BuildSystem) > 0 && py.Project.Dependencies == nil {
			command += " -e ."
		}
	case len(py.BuildSystem) > 0 || py.Project.Name != "" || p.has("setup.py"):
		if from = p.src(p.first("pyproject.toml", "setup.py"), ""); len(p.python.needs) == 0 &&
			(len(p.entryPoints()) == 0 || p.module() != "") {
			return // the source alone is enough
		}
		if command = venv + "-e ."; extras != "" {
			command = venv + `-e ".` + extras + `"`
		}
	default:
		return
	}
	p.set("app.prepare", command, from)
	p.set("network.allow", "pypi", from)
	p.makes(".venv")
	p.python.programs = ".venv/bin/"
	p.python.installed = !strings.HasPrefix(command, venv) || strings.Contains(command, "-e ")
}

// interpreter is the Python with the project's packages.
func (p *project) interpreter() string {
	if p.python.programs != "" {
		return p.python.programs + "python"
	}
	return "python3"
}

// pythonProgram returns a command of an image or a Procfile as it is run in the source.
func (p *project) pythonProgram(name string, words []string) (string, bool) {
	rest := strings.Join(words[1:], " ")
	switch name {
	case "uv", "poetry", "pipenv":
		if len(words) > 2 && words[1] == "run" {
			return p.pythonProgram(path.Base(words[2]), words[2:])
		}
		return "", false
	case "python", "python3":
		if len(words) < 2 {
			return "", false
		}
		file := words[1]
		if !strings.HasPrefix(file, "-") && !p.has(file) {
			return "", false
		}
		if file == "manage.py" && len(words) > 2 && words[2] == "runserver" && len(words) == 3 {
			rest += " 0.0.0.0:8000"
		}
		return p.interpreter() + " " + rest, true
	case "gunicorn", "uvicorn", "hypercorn", "daphne", "flask", "fastapi", "streamlit", "celery", "waitress-serve", "alembic", "granian":
		if _, needed := p.python.needs[name]; !needed && name != "flask" && name != "waitress-serve" {
			return "", false
		}
		return p.python.programs + strings.TrimSpace(name+" "+p.reachable(name, rest)), true
	}
	return "", false
}

// gunicornBinds says whether the configuration of gunicorn has an address, and records its port.
func (p *project) gunicornBinds(args string) bool {
	m := regexp.MustCompile(`(?:-c|--config)[ =](?:file:)?(\S+)`).FindStringSubmatch(args)
	file := p.first("gunicorn.conf.py")
	if m != nil {
		file = m[1]
	}
	text := p.text(file)
	p.portsIn(p.at(file), text, regexp.MustCompile(`(?m)^bind\s*=.*:(\d{2,5})`))
	if at := pyEnvPort(); at.MatchString(text) {
		p.set("PORT", "PORT", p.src(file, lineOf(text, at)))
	}
	return regexp.MustCompile(`(?m)^bind\s*=`).MatchString(text) || m != nil && text == ""
}

// reachable adds the options without which a server listens on 127.0.0.1 only.
func (p *project) reachable(name, args string) string {
	switch has := func(options ...string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.Contains(" "+args, " "+o) })
	}; {
	case name == "gunicorn" && !has("-b", "--bind") && !p.gunicornBinds(args):
		return "--bind 0.0.0.0:${PORT:-8000} " + args
	case name == "uvicorn" && !has("--host", "--uds"):
		return args + " --host 0.0.0.0"
	case name == "flask" && strings.Contains(" "+args+" ", " run ") && !has("--host", "-h"):
		return args + " --host 0.0.0.0"
	case name == "hypercorn" && !has("-b", "--bind"):
		return "--bind 0.0.0.0:8000 " + args
	}
	return args
}

var pythonWeb = []string{"flask", "fastapi", "django", "starlette", "aiohttp", "tornado", "sanic", "bottle", "falcon",
	"quart", "litestar",
	"pyramid", "streamlit", "djangorestframework", "gradio", "robyn", "cherrypy"}

func readPython(p *project) {
	for _, name := range pythonWeb {
		if from, ok := p.python.needs[name]; ok && !strings.Contains(from.Place, "dev") && !strings.Contains(from.Place,
			"test") {
			p.server("http", from)
			break
		}
	}
	p.djangoStart()
	p.pythonStarts()
	p.routes(".py")
	p.pythonPrograms()
	p.pythonChecks()
	if len(p.serves) > 0 {
		p.note("app.env.PYTHONUNBUFFERED", "1", Source{}, "abl sees the output without a delay")
	}
}

func (p *project) djangoStart() {
	if !p.has("manage.py") {
		return
	}
	for _, file := range p.requirements() {
		if m := oldDjango().FindStringSubmatch(p.text(file)); m != nil {
			p.forbid("app.command",
				p.at(file)+" asks for Django "+m[1]+", which runs on no Python that abl has (docs/toolchains.md)")
			delete(p.values, "toolchain.python")
			p.server("http", p.src("manage.py", ""))
			return
		}
	}
	from := p.src("manage.py", "")
	p.server("http", from)
	run := p.interpreter() + " manage.py "
	p.try(start{command: run + "migrate --noinput && " + run + "runserver --noreload 0.0.0.0:8000", port: 8000,
		from: from})
	for _, file := range p.sources(".py") {
		if path.Base(file) != "settings.py" && !strings.Contains(file, "settings/") {
			continue
		}
		if m := allowedHosts().FindStringSubmatch(p.tree.text(file, maxSource)); m != nil && !strings.Contains(m[1], "*") &&
			!strings.Contains(m[1], "app") {
			p.say("%s:%s: ALLOWED_HOSTS has to contain \"app\", the host name that the tests use", file,
				lineOf(p.tree.text(file, maxSource), allowedHosts()))
			break
		}
	}
}

var (
	oldDjango    = lazyregexp.New(`(?mi)^django\s*==\s*((?:1\.|2\.|3\.[01])[\d.]*)`)
	allowedHosts = lazyregexp.New(`(?m)^ALLOWED_HOSTS\s*=\s*(.*)$`)
	pyApp        = lazyregexp.New(`(?m)^(\w+)\s*(?::\s*\w+\s*)?=\s*(FastAPI|Flask|Starlette|Litestar|Quart|Sanic` +
		`|Bottle)\(`)
	pyFactory = lazyregexp.New(`(?m)^def (create_app|make_app)\(`)
	pyPort    = lazyregexp.New(`(?:environ\.get|getenv|config` +
		`|env(?:\.int)?)\(\s*['"]PORT['"]\s*,\s*(?:default\s*=\s*)?['"]?(\d{2,5})|\bport\s*=\s*(\d{2,5})\b`)
	pyEnvPort = lazyregexp.New(`environ(?:\.get\(|\[)\s*['"]PORT['"]|getenv\(\s*['"]PORT['"]`)
	pyTCP     = lazyregexp.New(`socketserver\.\w*TCPServer|asyncio\.start_server|\.create_server\(` +
		`|socket\.SOCK_STREAM[\s\S]*\.listen\(`)
	pyHTTP = lazyregexp.New(`HTTPServer\(|http\.server|make_server\(|web\.run_app\(|HTTPServer\b`)
	pyMain = lazyregexp.New(`(?m)^if __name__ == ['"]__main__['"]`)
)

// pythonStarts looks for the object that a server of the framework serves, and for a program that
// listens by itself.
func (p *project) pythonStarts() {
	for _, file := range p.sources(".py") {
		text := p.tree.text(file, maxSource)
		name := strings.TrimPrefix(strings.TrimPrefix(file, p.dir), "/")
		module := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(name, ".py"), "/__init__"), "/", ".")
		module = strings.TrimPrefix(module, "src.")
		m := pyApp().FindStringSubmatch(text)
		from := Source{file, lineOf(text, pyApp())}
		switch {
		case m == nil:
			p.pythonServer(file, name, text)
			continue
		case m[2] == "Flask" || m[2] == "Quart":
			p.flask(text, module+":"+m[1], from)
		case m[2] == "FastAPI" || m[2] == "Starlette" || m[2] == "Litestar":
			p.asgi(text, module+":"+m[1], from)
		}
		p.server("http", from)
	}
	for _, file := range p.sources(".py") {
		text := p.tree.text(file, maxSource)
		if _, flask := p.python.needs["flask"]; flask && len(p.starts) == 0 && pyFactory().MatchString(text) {
			name := strings.TrimPrefix(strings.TrimPrefix(file, p.dir), "/")
			module := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(name, ".py"), "/__init__"), "/", ".")
			p.flask(text, strings.TrimPrefix(module, "src."), Source{file, lineOf(text, pyFactory())})
		}
	}
}

// textPort is the port that a text of Python names, 0 for none.
func textPort(text string) (n int) {
	if m := pyPort().FindStringSubmatch(text); m != nil {
		fmt.Sscan(m[1]+m[2], &n)
	}
	return n
}

func orElse(n, otherwise int) string {
	if n == 0 {
		n = otherwise
	}
	return fmt.Sprint(n)
}

func (p *project) flask(text, app string, from Source) {
	p.try(start{command: p.python.programs + "flask --app " + app + " run --host 0.0.0.0 --port " +
		orElse(textPort(text), 5000), from: from})
}

func (p *project) asgi(text, app string, from Source) {
	port := orElse(textPort(text), 8000)
	for _, name := range []string{"uvicorn", "hypercorn", "granian", "fastapi"} {
		if _, ok := p.python.needs[name]; ok && name == "hypercorn" {
			p.try(start{command: p.python.programs + "hypercorn --bind 0.0.0.0:" + port + " " + app, from: from})
			return
		} else if ok {
			break
		}
	}
	p.try(start{command: p.python.programs + "uvicorn " + app + " --host 0.0.0.0 --port " + port, from: from})
}

// pythonServer records a program that listens without a framework of the list.
func (p *project) pythonServer(file, name, text string) {
	if len(p.entryPoints()) > 0 || strings.Count(name, "/") > 1 {
		return
	}
	kind, expr := "", pyHTTP()
	if pyHTTP().MatchString(text) {
		kind = "http"
	} else if pyTCP().MatchString(text) {
		kind, expr = "tcp", pyTCP()
	}
	if kind == "" {
		return
	}
	p.server(kind, Source{file, lineOf(text, expr)})
	p.portsIn(file, text, pyPort(),
		regexp.MustCompile(`\(\s*(?:['"](?:0\.0\.0\.0|localhost|127\.0\.0\.1|)['"])\s*,\s*(\d{2,5})\s*\)`))
	if pyEnvPort().MatchString(text) {
		p.set("PORT", "PORT", Source{file, lineOf(text, pyEnvPort())})
	}
	if pyMain().MatchString(text) {
		p.try(start{command: p.interpreter() + " " + name, from: Source{file, lineOf(text, pyMain())}})
	}
}
