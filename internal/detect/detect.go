// Package detect reads what a repository says about the system that it holds: how it starts, at
// which port it answers, how its dependencies are installed and its tests are run. It reads files
// only and runs nothing. Every fact has the file and the place that it is from.
package detect

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
)

// Source is the file and the place in it that a fact is from.
type Source struct {
	File  string `json:"file"`
	Place string `json:"place,omitempty"` // a dotted key, or the number of a line
}

// String returns "package.json: scripts.dev" or "Dockerfile:12".
func (s Source) String() string {
	switch _, err := strconv.Atoi(s.Place); {
	case s.Place == "":
		return s.File
	case err == nil:
		return s.File + ":" + s.Place
	}
	return s.File + ": " + s.Place
}

// Fact is one value of config.yaml that the repository defines.
type Fact struct {
	Key   string `json:"key"` // dotted, as in config.yaml
	Value string `json:"value"`
	From  Source `json:"from,omitzero"`
	Note  string `json:"note,omitempty"` // what else a reader has to know
}

// Open is a value that the repository does not define, or defines twice.
type Open struct {
	Key     string `json:"key"`
	Why     string `json:"why"`
	Choices []Fact `json:"choices,omitempty"`
}

// Report is the result of Read.
type Report struct {
	Stack string   `json:"stack"` // one of Stacks
	Facts []Fact   `json:"facts"`
	Open  []Open   `json:"open"`
	Notes []string `json:"notes"`
	// Packages are the Debian packages that the container needs besides abl's tools.
	Packages []Fact `json:"packages,omitempty"`
	// Ignore are the folders that app.prepare makes and .gitignore does not name.
	Ignore []string `json:"ignore,omitempty"`
}

// Stacks lists the languages that Read recognizes, and none.
func Stacks() []string {
	return []string{"node", "python", "go", "rust", "java", "ruby", "php", "none"}
}

// Get returns the value of a key, "" if the report has no fact about it.
func (r Report) Get(key string) string {
	for _, f := range r.Facts {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// Below returns the facts whose keys begin with prefix.
func (r Report) Below(prefix string) (all []Fact) {
	for _, f := range r.Facts {
		if strings.HasPrefix(f.Key, prefix) {
			all = append(all, f)
		}
	}
	return all
}

// Answer settles an open key with a value of the user's.
func (r *Report) Answer(key, value string) {
	r.Open = slices.DeleteFunc(r.Open, func(o Open) bool { return o.Key == key })
	r.Facts = append(r.Facts, Fact{Key: key, Value: value, From: Source{File: "your answer"}})
}

// Wish is what the user asked for, which no file overrides.
type Wish struct {
	Stack string // "" for the one that the files show
	Kind  string // likewise
}

// Read returns what the files say about the system in the folder dir of t, "" for the whole.
func Read(ctx context.Context, t *Tree, dir string, w Wish) Report {
	p := &project{ctx: ctx, tree: t, dir: dir, wish: w, values: map[string]Fact{}}
	p.report = Report{Facts: []Fact{}, Open: []Open{}, Notes: []string{}}
	p.findStack()
	s := p.language()
	s.load(p)
	p.readContainers()
	p.readProcfile()
	s.read(p)
	p.readMakefile()
	p.exampleEnv()
	p.decide()
	return p.report
}

// start is one way to start the system.
type start struct {
	command string
	from    Source
	port    int    // at which it listens then, 0 if the command does not say
	env     []Fact // that the command needs, as app.env.NAME
	note    string
}

// project collects what the readers of single files find.
type project struct {
	ctx    context.Context
	tree   *Tree
	dir    string
	wish   Wish
	report Report

	values   map[string]Fact // by key, the first one, which is from the most trusted file
	starts   []start         // the most trusted first
	ports    []Fact          // likewise
	serves   []Fact          // that it is a server: app.kind is http or tcp
	tools    []Fact          // that it is a program, or a library: app.kind is command
	checks   []string        // names of builder commands, in the order in which they are run
	readsEnv bool            // the app reads a .env, so that its .env.example has what it needs
	commands []Fact          // app.command of kind command
	barred   map[string]bool // keys that stay open whatever is found
	blocks   []Open          // why a key has to stay open although something was found
	image    *image          // of the Dockerfile, nil without one
	node     manifest        // package.json
	python   pythonProject
}

// set records a value unless a more trusted file had one.
func (p *project) set(key, value string, from Source) {
	p.note(key, value, from, "")
}

func (p *project) note(key, value string, from Source, note string) {
	if _, found := p.values[key]; !found && value != "" {
		p.values[key] = Fact{Key: key, Value: value, From: from, Note: note}
	}
}

// check records a command of the Builder's.
func (p *project) check(name, command, description string, from Source) {
	key := "builder_commands." + name
	if _, found := p.values[key]; found || command == "" {
		return
	}
	p.values[key] = Fact{Key: key, Value: command, From: from, Note: description}
	p.checks = append(p.checks, name)
}

func (p *project) ask(key, why string, choices ...Fact) {
	p.blocks = append(p.blocks, Open{Key: key, Why: why, Choices: choices})
}

// forbid keeps a key open although a value may be found: what the files ask for cannot be had.
func (p *project) forbid(key, why string) {
	if p.barred == nil {
		p.barred = map[string]bool{}
	}
	p.barred[key] = true
	p.ask(key, why)
}

func (p *project) say(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.report.Notes, text) {
		p.report.Notes = append(p.report.Notes, text)
	}
}

// needs records a Debian package.
func (p *project) needs(from Source, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(p.report.Packages, func(f Fact) bool { return f.Value == name }) {
			p.report.Packages = append(p.report.Packages, Fact{Key: "package", Value: name, From: from})
		}
	}
}

// makes records a folder that app.prepare or a build makes. The Builder's commits must not contain it.
func (p *project) makes(folder string) {
	if !strings.Contains(path.Base(folder), ".") || strings.HasPrefix(folder, ".") {
		p.ignore(folder)
	}
}

func (p *project) ignore(folder string) {
	if !p.tree.ignores(p.dir, folder) && !slices.Contains(p.report.Ignore, folder+"/") {
		p.report.Ignore = append(p.report.Ignore, folder+"/")
	}
}

func (p *project) server(kind string, from Source) {
	p.serves = append(p.serves, Fact{Key: "app.kind", Value: kind, From: from})
}

func (p *project) program(what string, from Source) {
	p.tools = append(p.tools, Fact{Key: "app.kind", Value: "command", From: from, Note: what})
}

func (p *project) listens(port int, from Source) {
	if port > 0 && port <= 65535 {
		p.ports = append(p.ports, Fact{Key: "app.port", Value: strconv.Itoa(port), From: from})
	}
}

var portFlags = lazyregexp.New(`(?:--port[= ]|--bind[= ]\S*:|--http-port[= ]|-b[= ]\S*:|(?:^|\s)-p[= ]?` +
	`|0\.0\.0\.0:|\s:|-S \S+:|\[::\]:|PORT=)(?:\$\{PORT:-)?(\d{2,5})\b`)

// portIn returns the port that a command line names, 0 if it names none.
func portIn(command string) int {
	if m := portFlags().FindStringSubmatch(command); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	for _, usual := range []struct {
		command string
		port    int
	}{{"uvicorn ", 8000}, {"flask --app", 5000}, {"flask run", 5000}, {"fastapi run", 8000}, {"streamlit run", 8501}} {
		if strings.Contains(command, usual.command) && !strings.Contains(command, "PORT") {
			return usual.port
		}
	}
	return 0
}

// try adds a way to start the system.
func (p *project) try(s start) {
	s.port = cmp.Or(s.port, portIn(s.command))
	p.starts = append(p.starts, s)
}
