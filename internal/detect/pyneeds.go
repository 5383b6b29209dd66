package detect

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pyproject is the part of a pyproject.toml that abl reads.
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
		Poetry struct {
			Name         string                    `toml:"name"`
			Dependencies map[string]any            `toml:"dependencies"`
			Scripts      map[string]any            `toml:"scripts"`
			Group        map[string]map[string]any `toml:"group"`
			Dev          map[string]any            `toml:"dev-dependencies"`
		} `toml:"poetry"`
		Pytest map[string]any `toml:"pytest"`
		Mypy   map[string]any `toml:"mypy"`
	} `toml:"tool"`
}

// usesPoetry reports whether the project has settings for Poetry.
func (p pyproject) usesPoetry() bool {
	return p.Tool.Poetry.Name != "" || p.Tool.Poetry.Dependencies != nil
}

const packageName = `^\s*([A-Za-z0-9][A-Za-z0-9._-]*)`

// require records the package of a requirement such as "Flask[async] >= 3".
func (p *python) require(text string, from Source) {
	name := strings.ToLower(strings.ReplaceAll(capture(packageName, text), "_", "-"))
	if _, known := p.deps[name]; !known && name != "" {
		p.deps[name] = from
	}
}

func (p *python) requireAll(texts []string, from Source) {
	for _, text := range texts {
		p.require(text, from)
	}
}

// readNeeds records the packages that the project depends on.
func (p *python) readNeeds() {
	in := func(place string) Source { return p.src("pyproject.toml", place) }
	project := p.pyproject.Project
	p.requireAll(project.Dependencies, in("project.dependencies"))
	if p.has("uv.lock") { // pip does not install groups
		for _, group := range slices.Sorted(maps.Keys(p.pyproject.DependencyGroups)) {
			p.requireGroup(group, 3)
		}
	}
	poetry := p.pyproject.Tool.Poetry
	tables := map[string]map[string]any{"dependencies": poetry.Dependencies, "dev-dependencies": poetry.Dev}
	for name, group := range poetry.Group {
		tables["group."+name+".dependencies"], _ = group["dependencies"].(map[string]any)
	}
	for _, place := range slices.Sorted(maps.Keys(tables)) {
		p.requireAll(slices.Collect(maps.Keys(tables[place])), in("tool.poetry."+place))
	}
	for _, file := range p.requirements() {
		p.readRequirements(file, 3)
	}
	for _, m := range captures(`(?m)^"?([A-Za-z][\w.-]*)"?\s*=`, p.text("Pipfile")) {
		p.require(m[1], p.src("Pipfile", ""))
	}
	p.readSetup()
	for name := range strings.FieldsSeq(testExtras) {
		if len(p.pyproject.DependencyGroups[name]) > 0 && p.group == "" {
			p.group = name
			p.requireGroup(name, 3)
		}
		if list, ok := project.OptionalDependencies[name]; ok && p.extras == "" {
			p.extras = "[" + name + "]"
			p.requireAll(list, in("project.optional-dependencies."+name))
		}
	}
}

// requireGroup records the packages of a dependency group, and of those that it includes up to a depth.
func (p *python) requireGroup(name string, depth int) {
	for _, item := range p.pyproject.DependencyGroups[name] {
		switch item := item.(type) {
		case string:
			p.require(item, p.src("pyproject.toml", "dependency-groups."+name))
		case map[string]any:
			if inner, ok := item["include-group"].(string); ok && depth > 0 {
				p.requireGroup(inner, depth-1)
			}
		}
	}
}

// testExtras are the usual names of an extra with the packages that the tests need.
const testExtras = "dev test tests testing"

// readSetup records the packages in setup.cfg and setup.py.
func (p *python) readSetup() {
	text := p.text("setup.cfg")
	p.requireAll(strings.Split(section(text, "install_requires"), "\n"), p.src("setup.cfg", "options.install_requires"))
	_, extras, _ := strings.Cut(text, "[options.extras_require]")
	for name := range strings.FieldsSeq(testExtras) {
		if list := section(extras, name); list != "" && p.extras == "" {
			p.extras = "[" + name + "]"
			p.requireAll(strings.Split(list, "\n"), p.src("setup.cfg", "options.extras_require."+name))
		}
	}
	needs := capture(`(?s)install_requires\s*=\s*\[(.*?)\]`, p.text("setup.py"))
	for _, m := range captures(`['"]([A-Za-z0-9._-]+)\s*(?:[<>=~!\[;][^'"]*)?['"]`, needs) {
		p.require(m[1], p.src("setup.py", "install_requires"))
	}
}

// section returns the indented lines below a key of setup.cfg.
func section(text, key string) string {
	return capture(`(?m)^`+key+`\s*=[ \t]*\n((?:[ \t]+\S.*\n|\s*\n)+)`, text)
}

const included = `^\s*(?:-r|--requirement)[ =]*(\S+)`

// readRequirements reads a file of requirements, and the files that it includes up to a depth.
func (p *python) readRequirements(file string, depth int) {
	for n, text := range strings.Split(p.text(file), "\n") {
		if inner := capture(included, text); inner != "" && depth > 0 {
			p.readRequirements(path.Join(path.Dir(file), inner), depth-1)
			continue
		}
		p.require(text, p.src(file, strconv.Itoa(n+1)))
	}
}

// requirements returns the files that pip installs from.
func (p *python) requirements() []string {
	return slices.DeleteFunc(fields("requirements.txt requirements/base.txt requirements/dev.txt requirements-dev.txt "+
		"dev-requirements.txt requirements-test.txt requirements_dev.txt"), func(name string) bool {
		included := name == "requirements/base.txt" && strings.Contains(p.text("requirements/dev.txt"), "base.txt")
		return !p.has(name) || included
	})
}

// pip installs into an environment of the project.
const pip = "python3 -m venv .venv && .venv/bin/pip install "

// outside returns the command that installs a package manager outside of the repository.
func outside(name string) string {
	return "python3 -m venv /tmp/" + name + " && /tmp/" + name + "/bin/pip install " + name + " && "
}

// prepare finds the package manager by its lock file, and records how it installs the packages.
func (p *python) prepare() {
	project, groups := p.pyproject.Project, p.pyproject.DependencyGroups
	builds := len(p.pyproject.BuildSystem) > 0
	var from Source
	var command string
	switch files := p.requirements(); {
	case p.has("uv.lock"):
		from = p.src("uv.lock", "")
		command = outside("uv") + "UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never /tmp/uv/bin/uv sync --frozen"
		if p.extras != "" {
			command += " --all-extras"
		}
		if _, dev := groups["dev"]; len(groups) > 1 || len(groups) == 1 && !dev {
			command += " --all-groups"
		}
	case p.has("poetry.lock") || p.pyproject.usesPoetry() && len(files) == 0:
		from = p.src(p.first("poetry.lock pyproject.toml"), "")
		command = outside("poetry") + "POETRY_VIRTUALENVS_IN_PROJECT=true /tmp/poetry/bin/poetry install --no-interaction"
	case p.has("Pipfile.lock") && len(files) == 0:
		from = p.src("Pipfile.lock", "")
		command = outside("pipenv") + "PIPENV_VENV_IN_PROJECT=1 /tmp/pipenv/bin/pipenv sync --dev"
	case len(files) > 0:
		from = p.src(files[0], "")
		command = pip + "-r " + strings.Join(files, " -r ")
		if p.installable() {
			command += " -e ."
		}
	case builds || project.Name != "" || p.has("setup.py"):
		from = p.src(p.first("pyproject.toml setup.py"), "")
		if len(p.deps) == 0 && (len(p.entryPoints()) == 0 || p.mainModule() != "") {
			return // the sources run without an installation
		}
		command = pip + "-e ."
		if p.extras != "" {
			command = pip + `-e ".` + p.extras + `"`
		}
	default:
		return
	}
	if p.group != "" && strings.HasPrefix(command, pip) {
		_, packages, _ := strings.Cut(command, pip)
		command = pip + `"pip>=25.1" && .venv/bin/pip install ` + packages + " --group " + p.group
	}
	p.install(from, command, "pypi", ".venv")
	p.venv = ".venv/bin/"
	p.installed = !strings.HasPrefix(command, pip) || strings.Contains(command, "-e ") || p.installsItself()
}

// installsItself reports whether a file of requirements names the project.
func (p *python) installsItself() bool {
	return slices.ContainsFunc(p.requirements(), func(file string) bool { return match(`(?m)^(?:-e\s*)?\.(?:\[|$)`, p.text(file)) })
}

// installable reports whether pip has to install the project in addition to its files of requirements.
func (p *python) installable() bool {
	if p.has("manage.py") || p.installsItself() {
		return false
	}
	project := p.pyproject.Project
	builds := project.Name != "" && len(p.pyproject.BuildSystem) > 0
	return p.has("setup.py") || builds && (project.Dependencies == nil || len(p.entryPoints()) > 0)
}
