package detect

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// decide settles kind, command, port and the rest from what the readers found.
func (p *project) decide() {
	switch kind := p.kind(); kind {
	case "command":
		p.decideProgram()
	case "http", "tcp":
		p.decideServer(kind)
	default:
		p.decideUnknown()
	}
	p.healthCheck()
	if _, found := p.values["app.command"]; !found && p.report.Stack != "none" {
		p.inFolders()
	}
	for key := range p.barred {
		delete(p.values, key)
	}
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if key != "PORT" {
			p.report.Facts = append(p.report.Facts, p.values[key])
		}
	}
	for _, o := range p.blocks {
		_, found := p.values[o.Key]
		again := slices.ContainsFunc(p.report.Open, func(other Open) bool { return other.Key == o.Key })
		if !found && !again {
			p.report.Open = append(p.report.Open, o)
		}
	}
}

// kind is what the files show the system to be, "" if they do not.
func (p *project) kind() string {
	switch {
	case p.wish.Kind != "":
		return p.wish.Kind
	case len(p.serves) > 0:
		for _, f := range p.serves {
			if f.Value != "" {
				p.set("app.kind", f.Value, f.From)
				return f.Value
			}
		}
		p.set("app.kind", "http", p.serves[0].From)
		return "http"
	case len(p.tools) > 0:
		f := p.tools[0]
		p.note("app.kind", "command", f.From, f.Note)
		return "command"
	}
	return ""
}

func (p *project) decideUnknown() {
	delete(p.values, "app.ready.path")
	if p.report.Stack == "none" && len(p.starts) == 0 {
		p.ask("app.kind", "no file shows whether it is a server or a program")
		p.ask("app.command", "no file shows how it starts")
		return
	}
	var choices []Fact
	for _, s := range p.starts {
		choices = append(choices, Fact{Key: "app.command", Value: s.command, From: s.from})
	}
	p.ask("app.kind", "no file shows whether it is a server or a program")
	p.ask("app.command", "no file shows how it starts", choices...)
}

func (p *project) decideProgram() {
	for _, key := range []string{"app.ready.path"} {
		delete(p.values, key)
	}
	var distinct []Fact
	for _, f := range p.commands {
		if !slices.ContainsFunc(distinct, func(o Fact) bool { return o.Value == f.Value }) {
			distinct = append(distinct, f)
		}
	}
	switch len(distinct) {
	case 0:
		p.ask("app.command", "no file shows which program it is")
	case 1:
		f := distinct[0]
		p.note("app.command", f.Value, f.From, f.Note)
	default:
		for _, f := range distinct {
			if at := path.Base(strings.TrimRight(f.From.Place, ".")); slices.Contains(p.names(),
				strings.Trim(at[strings.LastIndex(at, ".")+1:], `"`)) {
				p.note("app.command", f.Value, f.From, "it has the name of the project; there are other programs")
				return
			}
		}
		p.ask("app.command", "there are several programs", distinct...)
	}
}

func (p *project) decideServer(kind string) {
	if kind == "tcp" {
		delete(p.values, "app.ready.path")
	}
	if len(p.starts) == 0 {
		p.ask("app.command", "no file shows how it starts")
		if !slices.ContainsFunc(p.blocks, func(o Open) bool { return o.Key == "app.port" }) {
			p.decidePort(start{})
		}
		return
	}
	s := p.starts[0]
	if !slices.ContainsFunc(p.blocks, func(o Open) bool { return o.Key == "app.command" && len(o.Choices) > 0 }) {
		p.note("app.command", s.command, s.from, s.note)
	}
	for _, f := range s.env {
		p.note(f.Key, f.Value, f.From, f.Note)
	}
	if strings.Contains(s.command, "PORT") && portIn(s.command) == 0 {
		p.set("PORT", "PORT", s.from)
	}
	p.decidePort(s)
}

// decidePort takes the port that the start names, or the one on which the other files agree.
func (p *project) decidePort(s start) {
	if f, ok := p.values["app.env.PORT"]; ok && s.port == 0 {
		n, _ := strconv.Atoi(f.Value)
		if s.port = n; n > 0 {
			p.port(n, f.From, "")
			return
		}
	}
	var distinct []Fact
	for _, f := range p.ports {
		if !slices.ContainsFunc(distinct, func(o Fact) bool { return o.Value == f.Value }) {
			distinct = append(distinct, f)
		}
	}
	reads, movable := p.values["PORT"]
	named := strconv.Itoa(s.port)
	switch {
	case s.port > 0 && (len(distinct) == 0 || distinct[0].Value == named || !p.contained(distinct[0])):
		p.port(s.port, s.from, "")
	case s.port > 0 && strings.Contains(s.command, "${PORT:-"):
		p.port(atoi(distinct[0].Value), distinct[0].From, "")
		p.note("app.env.PORT", distinct[0].Value, s.from, "the command reads PORT")
	case s.port > 0:
		p.disagree(append([]Fact{{Key: "app.port", Value: named, From: s.from}}, distinct...))
	case len(distinct) == 1:
		p.port(atoi(distinct[0].Value), distinct[0].From, "")
	case len(distinct) > 1 && movable:
		f := distinct[0]
		p.port(atoi(f.Value), f.From, "")
		p.note("app.env.PORT", f.Value, reads.From, "the app reads PORT")
	case len(distinct) > 1:
		p.disagree(distinct)
	case movable:
		p.port(3000, reads.From, "the app reads PORT, so abl chooses one")
		p.note("app.env.PORT", "3000", reads.From, "the app reads PORT")
	default:
		p.ask("app.port", "no file shows at which port it listens")
	}
}

// contained says whether a port is from the compose file or the Dockerfile.
func (p *project) contained(f Fact) bool {
	return p.image != nil && f.From.File == p.image.file || strings.Contains(f.From.File, "compose")
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func (p *project) port(n int, from Source, note string) {
	if n == 7070 {
		p.ask("app.port", fmt.Sprintf("%s says 7070, which is abl's own in the app's container", from))
		return
	}
	p.note("app.port", strconv.Itoa(n), from, note)
}

func (p *project) disagree(choices []Fact) {
	said := make([]string, len(choices))
	for i, f := range choices {
		said[i] = fmt.Sprintf("%s says %s", f.From, f.Value)
	}
	p.ask("app.port", strings.Join(said, ", "), choices...)
}

// healthCheck joins the commands that check the source.
func (p *project) healthCheck() {
	var commands, described []string
	var from Source
	for _, name := range []string{"typecheck", "lint", "test"} {
		if f, ok := p.values["builder_commands."+name]; ok {
			commands, described = append(commands, f.Value), append(described, f.Note)
			from = Source{cmp.Or(from.File, f.From.File), cmp.Or(from.Place, f.From.Place)}
		}
	}
	if len(commands) == 0 {
		p.ask("builder_commands.health_check", "no file defines a test or a lint command")
		return
	}
	p.note("builder_commands.health_check", strings.Join(commands, " && "), Source{}, strings.Join(described, ", "))
}
