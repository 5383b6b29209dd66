package detect

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// decide chooses the kind, the command and the port from what the sources found.
func (p *project) decide() {
	kind := p.kind()
	if kind != "http" {
		delete(p.values, "app.ready.path")
	}
	switch kind {
	case "command":
		p.decideProgram()
	case "http", "tcp":
		p.decideServer()
	default:
		p.decideUnknown()
	}
	if build, run := splitBuild(p.values["app.command"]); build.Key != "" {
		p.values[build.Key], p.values[run.Key] = build, run
	}
	p.healthCheck()
	if _, found := p.values["app.command"]; !found && p.report.Stack != "none" {
		p.inFolders()
	}
	for key := range p.barred {
		delete(p.values, key)
	}
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		p.report.Facts = append(p.report.Facts, p.renameHosts(p.values[key]))
	}
	for _, o := range p.open {
		_, found := p.values[o.Key]
		if !found && !slices.ContainsFunc(p.report.Open, func(other Open) bool { return other.Key == o.Key }) {
			p.report.Open = append(p.report.Open, o)
		}
	}
}

// renameHosts replaces the names of services in a fact with those in app.services. It keeps a value that
// is only a name, because it may name a database, unless the variable's name contains HOST.
func (p *project) renameHosts(f Fact) Fact {
	if !strings.HasPrefix(f.Key, "app.env.") {
		return f
	}
	for _, name := range p.renamed {
		host := `(@|//|^)` + regexp.QuoteMeta(name) + `(:|/|,|$)`
		if f.Value != name || strings.Contains(f.Key, "HOST") {
			f.Value = regexp.MustCompile(host).ReplaceAllString(f.Value, "${1}"+hyphens(name)+"${2}")
		}
	}
	return f
}

// kind returns what the files show the system to be, "" if they do not.
func (p *project) kind() string {
	switch {
	case p.wish.Kind != "":
		return p.wish.Kind
	case len(p.servers) > 0:
		f := p.servers[max(0, slices.IndexFunc(p.servers, func(f Fact) bool { return f.Value != "" }))]
		kind := cmp.Or(f.Value, "http")
		p.set("app.kind", kind, f.From)
		return kind
	case len(p.programs) > 0:
		p.note("app.kind", "command", p.programs[0].From, p.programs[0].Note)
		return "command"
	}
	return ""
}

func (p *project) decideUnknown() {
	var choices []Fact
	for _, s := range p.starts {
		choices = append(choices, candidate(s.command, s.from))
	}
	p.ask("app.kind", "no file shows whether the app is a server or a program")
	p.ask("app.command", "no file shows how the app starts", choices...)
}

func (p *project) decideProgram() {
	all := distinct(p.commands)
	if len(all) == 0 {
		p.ask("app.command", "no file shows which program is the app")
		return
	}
	if len(all) == 1 {
		p.note("app.command", all[0].Value, all[0].From, all[0].Note)
		return
	}
	for _, f := range all {
		if key := strings.Split(f.From.Place, "."); slices.Contains(p.names(), strings.Trim(key[len(key)-1], `"`)) {
			p.note("app.command", f.Value, f.From, "named like the project; there are other programs")
			return
		}
	}
	p.ask("app.command", "there are several programs", all...)
}

const (
	building = `^(export PATH=\S+ && )?((?:npm|go|cargo|mvn|\./gradlew) (?:[^&]|>&)*\b` +
		`(?:build|package|classes)\b(?:[^&]|>&)*) && (.*)$`
	fromOutside = ` (?:-C|--prefix|--manifest-path) "\$ABL_SRC[^"]*"| >&2`
)

// splitBuild separates the build at the beginning of app.command, which becomes app.build and runs in
// the source. Without one, build has no key.
func splitBuild(f Fact) (build, run Fact) {
	m := compile(building).FindStringSubmatch(f.Value)
	if m == nil {
		return build, f
	}
	build, run = f, f
	build.Key, build.Value = "app.build", m[1]+compile(fromOutside).ReplaceAllString(m[2], "")
	run.Value, run.Note = m[1]+m[3], ""
	return build, run
}

// distinct returns the first fact of each value.
func distinct(facts []Fact) (all []Fact) {
	for _, f := range facts {
		if !slices.ContainsFunc(all, func(other Fact) bool { return other.Value == f.Value }) {
			all = append(all, f)
		}
	}
	return all
}

// names returns the names of the project in its manifests.
func (p *project) names() (all []string) {
	for file := range strings.FieldsSeq("package.json pyproject.toml setup.cfg setup.py Cargo.toml go.mod") {
		name := path.Base(capture(`(?m)(?:^|setup\()\s*"?name"?\s*[=:]\s*['"]?([^'"\s]+)|^module\s+"?([^\s"]+)`, p.text(file)))
		if name != "." && name != "app" {
			all = append(all, name)
		}
	}
	return all
}

func (p *project) decideServer() {
	if len(p.starts) == 0 {
		p.ask("app.command", "no file shows how the app starts")
		if !p.asked("app.port") {
			p.decidePort(start{})
		}
		return
	}
	s := p.starts[0]
	if !slices.ContainsFunc(p.open, func(o Open) bool { return o.Key == "app.command" && len(o.Choices) > 0 }) {
		p.note("app.command", s.command, s.from, s.note)
	}
	for _, f := range append(s.env, p.image.appEnv()...) {
		p.note(f.Key, f.Value, f.From, f.Note)
	}
	if strings.Contains(s.command, "PORT") && portIn(s.command) == 0 {
		p.readsPort(s.from)
	}
	p.decidePort(s)
}

// decidePort takes the port that the start names, or the one on which the other files agree.
func (p *project) decidePort(s start) {
	if f := p.values["app.env.PORT"]; s.port == 0 && atoi(f.Value) > 0 {
		p.port(f.Value, f.From, "")
		return
	}
	all := distinct(p.ports)
	named := strconv.Itoa(s.port)
	switch {
	case s.port > 0 && (len(all) == 0 || all[0].Value == named || !p.contained(all[0]) || s.own):
		p.port(named, s.from, "")
	case s.port > 0 && strings.Contains(s.command, "${PORT:-"):
		p.port(all[0].Value, all[0].From, "")
		p.note("app.env.PORT", all[0].Value, s.from, "the command reads PORT")
	case s.port > 0:
		p.disagree(append([]Fact{fact("app.port", named, s.from)}, all...))
	case len(all) == 1:
		p.port(all[0].Value, all[0].From, "")
	case len(all) > 1 && p.portVar.File != "":
		p.port(all[0].Value, all[0].From, "")
		p.note("app.env.PORT", all[0].Value, p.portVar, "the app reads PORT")
	case len(all) > 1:
		p.disagree(all)
	case p.portVar.File != "":
		p.port("3000", p.portVar, "the app reads PORT; abl chose this value")
		p.note("app.env.PORT", "3000", p.portVar, "the app reads PORT")
	default:
		p.ask("app.port", "no file shows the port of the app")
	}
}

// contained reports whether a fact was read from the compose file or the Dockerfile.
func (p *project) contained(f Fact) bool {
	return p.image != nil && f.From.File == p.image.file || strings.Contains(f.From.File, "compose")
}

// port records app.port.
func (p *project) port(port string, from Source, note string) {
	if port == "7070" {
		p.ask("app.port", fmt.Sprintf("%s has port 7070, which abl uses itself in the app's container", from))
		return
	}
	p.note("app.port", port, from, note)
}

func (p *project) disagree(choices []Fact) {
	said := make([]string, len(choices))
	for i, f := range choices {
		said[i] = fmt.Sprintf("%s has %s", f.From, f.Value)
	}
	p.ask("app.port", strings.Join(said, ", "), choices...)
}

// healthCheck records the command that runs all checks of the source.
func (p *project) healthCheck() {
	var commands, descriptions []string
	for name := range strings.FieldsSeq("typecheck lint test") {
		if f, ok := p.values["builder_commands."+name]; ok {
			commands, descriptions = append(commands, f.Value), append(descriptions, f.Note)
		}
	}
	if len(commands) == 0 {
		p.ask("builder_commands.health_check", "no file defines a test or a lint command")
		return
	}
	p.note("builder_commands.health_check", strings.Join(commands, " && "), Source{}, strings.Join(descriptions, ", "))
}
