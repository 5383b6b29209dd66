package detect

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// entryPoints are the programs that the project declares, with their places.
func (p *project) entryPoints() map[string]Source {
	all := map[string]Source{}
	py := p.python.pyproject
	for name := range py.Project.Scripts {
		all[name] = p.src("pyproject.toml", "project.scripts."+name)
	}
	if py.Tool.Poetry != nil {
		for name := range py.Tool.Poetry.Scripts {
			all[name] = p.src("pyproject.toml", "tool.poetry.scripts."+name)
		}
	}
	for text := range strings.Lines(section(p.text("setup.cfg"), "console_scripts")) {
		if name, _, ok := strings.Cut(strings.TrimSpace(text), "="); ok {
			all[strings.TrimSpace(name)] = p.src("setup.cfg", "options.entry_points."+strings.TrimSpace(name))
		}
	}
	for _, m := range regexp.MustCompile(`['"]([\w.-]+)\s*=\s*[\w.]+:\w+['"]`).FindAllStringSubmatch(p.text("setup.py"),
		-1) {
		all[m[1]] = p.src("setup.py", "entry_points."+m[1])
	}
	return all
}

// module is the __main__.py of a package, "" for none.
func (p *project) module() string {
	for _, file := range p.sources(".py") {
		if path.Base(file) == "__main__.py" && path.Dir(file) != path.Clean("./"+p.dir) {
			return file
		}
	}
	return ""
}

// pythonPrograms records the programs that the project declares, or that it is a library.
func (p *project) pythonPrograms() {
	entries := p.entryPoints()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		p.program("a program", entries[name])
		if p.python.installed {
			p.commands = append(p.commands, Fact{Key: "app.command", Value: `"$ABL_SRC/.venv/bin/` + name + `"`,
				From: entries[name]})
		}
	}
	built := p.has("setup.py") || len(p.python.BuildSystem) > 0
	if built && len(p.starts) == 0 && p.image == nil && len(p.barred) == 0 {
		p.serves, p.ports = nil, nil // a library for a framework needs it, too
	}
	if len(p.commands) > 0 || len(p.serves) > 0 {
		return
	}
	search := `PYTHONPATH="$ABL_SRC" `
	if p.hasFolder("src") {
		search = `PYTHONPATH="$ABL_SRC/src" `
	}
	python := "python3"
	if p.python.programs != "" {
		python = `"$ABL_SRC/` + p.python.programs + `python"`
	}
	if file := p.module(); file != "" {
		name := strings.TrimPrefix(strings.TrimPrefix(path.Dir(file), p.dir), "/")
		p.program("a program", Source{File: file})
		module := strings.ReplaceAll(strings.TrimPrefix(name, "src/"), "/", ".")
		p.commands = append(p.commands, Fact{Key: "app.command", Value: search + python + " -m " + module,
			From: Source{File: file}})
		return
	}
	for _, file := range p.sources(".py") {
		inner := strings.TrimPrefix(strings.TrimPrefix(file, p.dir), "/")
		if text := p.tree.text(file, maxSource); !strings.Contains(inner, "/") && inner != "setup.py" &&
			pyMain().MatchString(text) {
			from := Source{file, lineOf(text, pyMain())}
			p.program("a program", from)
			p.commands = append(p.commands, Fact{Key: "app.command", Value: python + ` "$ABL_SRC/` + inner + `"`, From: from})
		}
	}
	if from := p.first("pyproject.toml", "setup.py"); len(p.tools) == 0 && from != "" && p.image == nil &&
		len(p.sources(".py")) > 0 {
		p.library(p.src(from, ""), search+python, "Python runs what a test passes by -c")
	}
}

// pythonChecks records the tools that the project is set up for and that app.prepare installs.
func (p *project) pythonChecks() {
	needs := p.python.needs
	run := p.interpreter() + " -m "
	if from, ok := needs["ruff"]; ok {
		p.check("lint", run+"ruff check .", "lint", from)
	} else if from, ok := needs["flake8"]; ok {
		p.check("lint", run+"flake8", "lint", from)
	}
	configured := p.has("mypy.ini") || p.python.Tool.Mypy != nil || strings.Contains(p.text("setup.cfg"), "[mypy]")
	if from, ok := needs["mypy"]; ok && configured {
		p.check("typecheck", run+"mypy .", "type check", from)
	}
	tests := p.tree.Below(p.dir, func(name string) bool {
		base := path.Base(name)
		return strings.HasPrefix(base, "test_") && strings.HasSuffix(base, ".py") || base == "tests.py" ||
			strings.HasSuffix(base, "_test.py")
	})
	from, ok := needs["pytest"]
	switch {
	case !ok && len(tests) > 0 && !p.has("manage.py") && p.pytest(tests):
		p.say("the tests are pytest's (%s), which app.prepare does not install", tests[0])
	case ok && len(tests) > 0:
		p.check("test", run+"pytest", "tests", from)
	case len(tests) > 0 && p.has("manage.py"):
		p.check("test", p.interpreter()+" manage.py test", "tests", Source{File: tests[0]})
	case len(tests) > 0 && strings.Contains(p.tree.Text(tests[0]), "unittest"):
		p.check("test", run+"unittest discover -s "+p.testFolder(tests[0]), "tests", Source{File: tests[0]})
	case len(tests) > 0:
		p.say("there are tests (%s), but no file names the program that runs them", tests[0])
	}
}

// pytest says whether the tests need pytest.
func (p *project) pytest(tests []string) bool {
	if p.has("pytest.ini") || p.python.Tool.Pytest != nil || strings.Contains(p.text("setup.cfg"), "[tool:pytest]") ||
		strings.Contains(p.text("tox.ini"), "[pytest]") || strings.Contains(p.text("tox.ini"), "pytest") {
		return true
	}
	return slices.ContainsFunc(tests, func(file string) bool {
		text := p.tree.text(file, maxSource)
		return strings.Contains(text, "import pytest") || !strings.Contains(text, "unittest") && !strings.Contains(text,
			"TestCase")
	})
}

func (p *project) testFolder(file string) string {
	dir := strings.Trim(strings.TrimPrefix(path.Dir(file), p.dir), "/")
	if dir == "" {
		return "."
	}
	return fmt.Sprint(dir)
}
