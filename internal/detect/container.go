package detect

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
)

// readContainers reads the compose file and the Dockerfile.
func (p *project) readContainers() {
	file := p.readCompose()
	if file == "" || !p.tree.Has(file) {
		file = p.at(p.first("Dockerfile", "Containerfile", "docker/Dockerfile", "build/Dockerfile", "deploy/Dockerfile"))
	}
	if file == "" || !p.tree.Has(file) {
		return
	}
	img := readImage(file, p.tree.Text(file))
	p.image = &img
	base, _ := baseOf(img.from)
	if tooling().MatchString(base) { // it serves files that a build made, at a port of its own
		p.serves, p.ports = nil, nil
		delete(p.values, "app.ready.path")
		return
	}
	if len(img.ports) > 1 {
		p.say("%s exposes %d ports; the first is taken for the app's", file, len(img.ports))
	}
	for _, f := range img.ports[:min(1, len(img.ports))] {
		n, _ := strconv.Atoi(f.Value)
		p.listens(n, f.From)
		p.server("", f.From)
	}
	p.set("app.ready.path", probe(img.health.args), Source{file, line(img.health.line)})
	p.imageStart(img)
}

// imageStart takes the command of an image for the start, if it runs in the source as well.
func (p *project) imageStart(img image) {
	at := img.cmd
	if at.word == "" {
		at = img.entry
	}
	if at.word == "" {
		return
	}
	whole := strings.TrimSpace(img.entry.command() + " " + img.cmd.command())
	for _, text := range []string{img.cmd.command(), whole} {
		if command, ok := p.runnable(p.local(text, img)); ok {
			s := start{command: command, from: Source{img.file, line(at.line)}}
			for _, name := range []string{"PORT", "HOST", "HOSTNAME"} {
				if f, set := img.env[name]; set {
					s.env = append(s.env, f)
				}
			}
			if n, err := strconv.Atoi(img.env["PORT"].Value); err == nil {
				s.port = n
			}
			p.try(s)
			return
		}
	}
}

// local turns the paths of an image into paths of the source: /app/server.js into server.js.
func (p *project) local(command string, img image) string {
	if img.workdir == "" || img.workdir == "/" {
		return command
	}
	return regexp.MustCompile(`(^|[\s=])`+regexp.QuoteMeta(img.workdir)+`/`).ReplaceAllString(command, "$1")
}

var (
	joined     = lazyregexp.New(`\s*(?:&&|;)\s*`)
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=\S*$`)
)

// runnable says whether a command line of an image or a Procfile runs in the source with the
// project's own tools, and returns it as it is run there.
func (p *project) runnable(command string) (string, bool) {
	command = strings.TrimSpace(command)
	if command == "" || strings.Contains(command, "\n") {
		return "", false
	}
	parts := joined().Split(command, -1)
	for i, part := range parts {
		words := strings.Fields(part)
		if len(words) > 0 && words[0] == "exec" {
			words = words[1:]
		}
		lead := 0
		for lead < len(words) && assignment().MatchString(words[lead]) {
			lead++
		}
		if lead == len(words) {
			return "", false
		}
		run, ok := p.onePart(words[lead:])
		if !ok {
			return "", false
		}
		parts[i] = strings.Join(append(slices.Clone(words[:lead]), run), " ")
	}
	return strings.Join(parts, " && "), true
}

// onePart returns one command as it is run in the source, and whether it runs there.
func (p *project) onePart(words []string) (string, bool) {
	name := path.Base(words[0])
	switch stack := p.report.Stack; {
	case stack == "node":
		return p.nodeProgram(name, words)
	case stack == "python":
		return p.pythonProgram(name, words)
	case stack == "ruby" && slices.Contains([]string{"bundle", "rails", "ruby", "puma", "rackup", "rake", "bin/rails"},
		name):
		return strings.Join(words, " "), true
	case stack == "php" && name == "php" && len(words) > 1:
		return strings.Join(words, " "), true
	case stack == "go" && name == "go" && len(words) > 1 && words[1] == "run":
		return strings.Join(words, " "), true
	case stack == "rust" && name == "cargo" && len(words) > 1 && words[1] == "run":
		return strings.Join(words, " "), true
	}
	return "", false
}

// readProcfile reads the start of a web process.
func (p *project) readProcfile() {
	for n, text := range strings.Split(p.text("Procfile"), "\n") {
		kind, command, ok := strings.Cut(strings.TrimSpace(text), ":")
		if !ok || strings.HasPrefix(kind, "#") {
			continue
		}
		from := p.src("Procfile", line(n+1))
		if kind != "web" {
			continue
		}
		p.server("http", from)
		if command, ok := p.runnable(command); ok {
			p.try(start{command: command, from: from})
		}
	}
}

// makeTargets are the targets of a Makefile with their lines.
func (p *project) makeTargets() map[string]string {
	all := map[string]string{}
	rule := lazyTarget()
	for n, text := range strings.Split(p.text(p.first("Makefile", "makefile", "GNUmakefile")), "\n") {
		if m := rule.FindStringSubmatch(text); m != nil {
			for name := range strings.FieldsSeq(m[1]) {
				if all[name] == "" {
					all[name] = line(n + 1)
				}
			}
		}
	}
	return all
}

var lazyTarget = lazyregexp.New(`^([A-Za-z0-9_./ -]+):(?:[^=]|$)`)
