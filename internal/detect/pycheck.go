package detect

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// entryPoints returns the programs that the project defines, with their places.
func (p *python) entryPoints() map[string]Source {
	all := map[string]Source{}
	for name := range p.pyproject.Project.Scripts {
		all[name] = p.src("pyproject.toml", "project.scripts."+name)
	}
	for name := range p.pyproject.Tool.Poetry.Scripts {
		all[name] = p.src("pyproject.toml", "tool.poetry.scripts."+name)
	}
	for text := range strings.Lines(section(p.text("setup.cfg"), "console_scripts")) {
		if name, _, ok := strings.Cut(text, "="); ok {
			name = strings.TrimSpace(name)
			all[name] = p.src("setup.cfg", "options.entry_points."+name)
		}
	}
	scripts := capture(`console_scripts['"]?\]?[\s:=]*\[?([^\]\[]*)`, p.text("setup.py"))
	for _, m := range captures(`(?m)(?:^|['"])\s*([\w.-]+)\s*=\s*[\w.]+:\w+`, scripts) {
		all[m[1]] = p.src("setup.py", "entry_points."+m[1])
	}
	return all
}

// mainModule returns the __main__.py of a package, "" for none.
func (p *python) mainModule() string {
	for _, file := range p.sources("python") {
		if path.Base(file) == "__main__.py" && path.Dir(p.inner(file)) != "." {
			return file
		}
	}
	return ""
}

// findPrograms records the programs of the project, or that it is a library.
func (p *python) findPrograms() {
	entries := p.entryPoints()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		command := ""
		if p.installed {
			command = `"$ABL_SRC/.venv/bin/` + name + `"`
		}
		p.program("a program", command, entries[name], "")
	}
	p.findScripts()
	built := p.has("setup.py") || len(p.pyproject.BuildSystem) > 0
	if built && len(p.starts) == 0 && p.image == nil && len(p.barred) == 0 {
		p.noServer() // an extension of a framework also depends on it
	}
	if len(p.commands) > 0 || len(p.servers) > 0 {
		return
	}
	run := p.fromOutside()
	if file := p.mainModule(); file != "" {
		p.program("a program", run+" -m "+p.moduleOf(path.Dir(file)), Source{File: file}, "")
		return
	}
	for _, file := range p.sources("python") {
		name, from := p.inner(file), find(file, p.code(file), pyMain)
		if path.Dir(name) == "." && name != "setup.py" && from.Place != "" {
			_, python, _ := strings.Cut(run, " ") // its own folder is in the path
			p.program("a program", python+` "$ABL_SRC/`+name+`"`, from, "")
		}
	}
	if file := p.first("pyproject.toml setup.py"); len(p.programs) == 0 && file != "" && p.image == nil &&
		len(p.sources("python")) > 0 {
		p.library(p.src(file, ""), run, "tests pass code to python3 -c")
	}
}

// findScripts records the programs of setup.py that are files.
func (p *python) findScripts() {
	text := p.text("setup.py")
	from := find(p.at("setup.py"), text, setupScripts)
	if from.Place == "" {
		return
	}
	found := false
	for _, m := range captures(`['"]([\w./-]+)['"]`, capture(setupScripts, text)) {
		if p.has(m[1]) {
			p.program("a program", p.fromOutside()+` "$ABL_SRC/`+m[1]+`"`, from, "")
			found = true
		}
	}
	if !found {
		p.program("a program", "", from, "")
	}
}

const setupScripts = `\bscripts\s*=\s*(\[[^\]]*\]|\w)`

// fromOutside returns the interpreter for a command in another folder, with the modules of the project.
func (p *python) fromOutside() string {
	path := `PYTHONPATH="$ABL_SRC" `
	if p.hasFolder("src") {
		path = `PYTHONPATH="$ABL_SRC/src" `
	}
	if p.venv == "" {
		return path + "python3"
	}
	return path + `"$ABL_SRC/` + p.venv + `python"`
}

// findChecks records the tools that the project is set up for and that app.prepare installs.
func (p *python) findChecks() {
	run := p.interpreter() + " -m "
	for _, c := range [][2]string{{"ruff", "ruff check ."}, {"flake8", "flake8"}} {
		if from, ok := p.deps[c[0]]; ok {
			p.check("lint", run+c[1], "lint", from)
		}
	}
	mypy := p.has("mypy.ini") || p.pyproject.Tool.Mypy != nil || strings.Contains(p.text("setup.cfg"), "[mypy]")
	if from, ok := p.deps["mypy"]; ok && mypy {
		p.check("typecheck", run+"mypy .", "type check", from)
	}
	isPythonTest := compile(`(?:^|/)(?:test_[^/]*|tests|[^/]*_test)\.py$`)
	tests := p.tree.Below(p.dir, isPythonTest.MatchString)
	if len(tests) == 0 {
		return
	}
	from, installed := p.deps["pytest"]
	django := p.isDjango()
	switch {
	case installed:
		p.check("test", run+"pytest", "tests", from)
	case django:
		p.check("test", p.interpreter()+" manage.py test", "tests", Source{File: tests[0]})
	case p.needPytest(tests):
		p.say("the tests need pytest (%s), which app.prepare does not install", tests[0])
	default:
		p.check("test", run+"unittest discover -s "+p.testFolder(tests), "tests", Source{File: tests[0]})
	}
}

// testFolder returns the folder of all tests with the options that unittest needs for a package.
func (p *python) testFolder(tests []string) string {
	dir := path.Dir(tests[0])
	for _, file := range tests {
		for dir != "." && !strings.HasPrefix(file, dir+"/") {
			dir = path.Dir(dir)
		}
	}
	if dir = path.Clean(p.inner(dir)); p.has(path.Join(dir, "__init__.py")) {
		return dir + " -t ."
	}
	return dir
}

// needPytest reports whether the tests do not run with the unittest of the standard library.
func (p *python) needPytest(tests []string) bool {
	return p.has("pytest.ini") || p.pyproject.Tool.Pytest != nil ||
		strings.Contains(p.text("setup.cfg"), "[tool:pytest]") ||
		strings.Contains(p.text("tox.ini"), "pytest") || slices.ContainsFunc(tests, func(file string) bool {
		text := p.code(file)
		unit := strings.Contains(text, "unittest") || strings.Contains(text, "TestCase")
		return !unit || strings.Contains(text, "import pytest")
	})
}
