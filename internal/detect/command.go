package detect

import (
	"path"
	"strings"
)

const (
	plainWord  = `^[A-Za-z0-9_@%+=:,./$*{}\[\]-]+$`
	joined     = `\s*(?:&&|;)\s*`
	assignment = `^[A-Za-z_][A-Za-z0-9_]*=\S*$`
)

// commandLine joins words to a command of the shell. Of "sh -c TEXT" it returns TEXT.
func commandLine(words []string) string {
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		if name := path.Base(words[0]); name == "sh" || name == "bash" {
			return strings.TrimSpace(words[2])
		}
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if !match(plainWord, word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// runnable returns a command of an image, a Procfile or a Makefile as it runs in the repository with
// the project's own tools. It returns "" if it does not run there.
func (p *project) runnable(command string) string {
	command = strings.TrimSpace(command)
	if command == "" || strings.Contains(command, "\n") {
		return ""
	}
	parts := compile(joined).Split(command, -1)
	for i, part := range parts {
		words := strings.Fields(strings.TrimPrefix(part, "exec "))
		lead := 0
		for lead < len(words) && match(assignment, words[lead]) {
			lead++
		}
		if lead == len(words) {
			return ""
		}
		run := p.inRepository(words[lead:])
		if run == "" {
			return ""
		}
		parts[i] = strings.Join(append(words[:lead:lead], run), " ")
	}
	return strings.Join(parts, " && ")
}

// inRepository returns a single command as it runs in the repository, or "".
func (p *project) inRepository(words []string) string {
	if c, ok := p.language.(commander); ok {
		return c.command(path.Base(words[0]), words)
	}
	command, runs := strings.Join(words, " "), stackOf(p.report.Stack).runs
	if runs == "" || capture("("+runs+")", command) == "" {
		return ""
	}
	return command
}

const portFlags = `(?:--port[= ]|--bind[= ]\S*:|--http-port[= ]|-b[= ]\S*:|(?:^|\s)-p[= ]?` +
	`|0\.0\.0\.0:|\s:|-S \S+:|\[::\]:|PORT=)(?:\$\{PORT:-)?(\d{2,5})\b`

// portIn returns the port that a command listens on, 0 if it does not show one.
func portIn(command string) int {
	if port := capture(portFlags, command); port != "" || strings.Contains(command, "PORT") {
		return atoi(port)
	}
	for _, server := range []struct {
		command string
		port    int
	}{
		{"uvicorn ", 8000},
		{"flask --app", 5000},
		{"flask run", 5000},
		{"fastapi run", 8000},
		{"streamlit run", 8501},
	} {
		if strings.Contains(command, server.command) {
			return server.port
		}
	}
	return 0
}

// procfile is the Procfile, of which only the web process is the app.
type procfile struct{ *project }

func (p procfile) find() {
	text := p.text("Procfile")
	from := find(p.at("Procfile"), text, webProcess)
	if command := capture(webProcess, text); command != "" {
		p.server("http", from)
		if command = p.runnable(command); command != "" {
			p.try(command, from)
		}
	}
}

const webProcess = `(?m)^[ \t]*web:(.*)$`

// makefile is the Makefile. It is used where the language shows nothing.
type makefile struct{ *project }

// makeRule matches a rule with its targets, prerequisites and recipe.
const makeRule = `(?m)^([A-Za-z0-9_./ -]+):(?:[^=\n].*)?$((?:\n\t.*)*)`

// target is a target of a Makefile.
type target struct {
	recipe string
	from   Source
}

func (m makefile) targets(file string) map[string]target {
	all, text := map[string]target{}, m.text(file)
	for _, at := range compile(makeRule).FindAllStringSubmatchIndex(text, -1) {
		for name := range strings.FieldsSeq(text[at[2]:at[3]]) {
			if _, known := all[name]; !known {
				all[name] = target{strings.TrimSpace(text[at[4]:at[5]]), m.src(file, lineAt(text, at[0]))}
			}
		}
	}
	return all
}

func (m makefile) find() {
	file := m.first("Makefile makefile GNUmakefile")
	targets := m.targets(file)
	if m.report.Stack == "none" {
		m.checks(targets, m.src(file, ""))
	}
	for name := range strings.FieldsSeq("run serve start") {
		if t, ok := targets[name]; ok && len(m.starts)+len(m.commands) == 0 {
			m.start("make "+name, t)
			return
		}
	}
}

// checks records the targets that check the source, and the packages that they need.
func (m makefile) checks(targets map[string]target, from Source) {
	if m.packages() != "make" && len(targets) > 0 {
		m.needs(from, m.packages())
	}
	for _, c := range [][2]string{{"lint", "lint"}, {"test", "test"}, {"check", "test"}} {
		if t, ok := targets[c[0]]; ok {
			m.check(c[1], "make "+c[0], c[0], t.from)
			m.needs(from, m.packages())
		}
	}
}

// start records a target that runs the app. Outside of the stack none the container has no make, so
// the recipe has to run there.
func (m makefile) start(command string, t target) {
	recipe := strings.TrimLeft(t.recipe, "@-")
	if strings.Contains(recipe, "$") {
		recipe = "" // only make has the variables
	}
	recipe = m.runnable(recipe)
	switch {
	case recipe != "":
		m.try(recipe, t.from)
	case m.report.Stack != "none":
	case len(m.servers) > 0 && !strings.Contains(t.recipe, "docker"):
		m.try(command, t.from)
		m.needs(t.from, m.packages())
	default:
		m.ask("app.command", "no file shows whether the app is a server or a program",
			candidate(command, t.from))
	}
}

// packages returns the Debian package that contains make, with a compiler for sources in C.
func (m makefile) packages() string {
	if m.count(".c .cc .cpp") > 0 {
		return "build-essential"
	}
	return "make"
}
