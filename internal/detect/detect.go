// Package detect reads from a repository how its system starts, on which port it listens, how its
// dependencies are installed and how its tests are run. It only reads files and runs nothing. Every
// fact names the file and the place that it was read from.
package detect

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// Source is the file, and the place in it, that a fact was read from.
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
	Note  string `json:"note,omitempty"` // an explanation for the reader
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
	// Packages are the Debian packages that the container needs in addition to abl's tools.
	Packages []Fact `json:"packages,omitempty"`
	// Ignore lists the folders that app.prepare creates and .gitignore does not name.
	Ignore []string `json:"ignore,omitempty"`
}

// Get returns the value of a key, or "" if the report has no fact about it.
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

// Answer closes an open key with a value from the user.
func (r *Report) Answer(key, value string) {
	r.Open = slices.DeleteFunc(r.Open, func(o Open) bool { return o.Key == key })
	build, run := splitBuild(fact(key, value, Source{File: "your answer"}))
	r.Facts = append(r.Facts, run)
	if build.Key != "" {
		r.Facts = append(r.Facts, build)
	}
}

// Wish is what the user asked for. It overrides every file.
type Wish struct {
	Stack string // "" to detect it
	Kind  string // "" to detect it
}

// source reads one kind of file, or the files of one language, and records what it finds.
type source interface {
	find()
}

// language is the source of a stack.
type language interface {
	source
	// load reads the dependencies and records app.prepare. The sources before find rely on it.
	load()
}

// commander is a language in which the commands of an image, a Procfile or a Makefile need a change
// to run in the repository.
type commander interface {
	// command returns the command that runs in the repository, or "" if it does not run there. It
	// gets the words of the command, and the base name of the first.
	command(name string, words []string) string
}

// project is the folder to read, with everything that the sources found in it so far.
type project struct {
	folder
	findings
	language   language
	dockerfile string // the path of the app's Dockerfile, "" without one
	image      *image // the last stage of that Dockerfile, nil without one
}

// Read returns what the files say about the system in the folder dir of t, "" for the root.
func Read(ctx context.Context, t *Tree, dir string, w Wish) Report {
	p := newProject(folder{t, dir}, w)
	p.findStack()
	p.language.load()
	all := []source{
		compose{project: p, ctx: ctx}, dockerfile{p}, procfile{p}, p.language, makefile{p}, sampleEnv{p},
	}
	for _, s := range all {
		s.find()
	}
	p.decide()
	return p.report
}

func newProject(f folder, w Wish) *project {
	return &project{folder: f, language: plain{}, findings: findings{
		wish:   w,
		report: Report{Stack: "none", Facts: []Fact{}, Open: []Open{}, Notes: []string{}},
		values: map[string]Fact{},
		deps:   map[string]Source{},
		barred: map[string]bool{},
	}}
}
