package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/scaffold"
	"abl/cmd/internal/view"
	"abl/internal/config"
	"abl/internal/detect"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/state"

	"golang.org/x/sys/unix"
)

const whichKind = "is it http, a server; tcp, a server that speaks no HTTP; or command, a program to be run?"

// readRepository reads what the source says about itself, if a new project has one, and asks at a
// terminal for what stays open.
func readRepository(ctx context.Context, in *cli.Input, dir string, p *scaffold.Plan) error {
	if _, err := os.Lstat(filepath.Join(dir, state.Dir)); !errors.Is(err, fs.ErrNotExist) {
		return nil // its settings decide
	}
	t, err := sourceTree(dir, p)
	if err != nil {
		return err
	}
	a := newQuestions(ctx, in)
	if t == nil {
		if p.Stack == "none" && p.Kind == "" {
			p.Kind = a.ask(whichKind+" (Enter: the files tell)", nil)
		}
		return context.Cause(ctx)
	}
	wish := detect.Wish{Stack: p.Stack, Kind: p.Kind}
	if wish.Kind != "" && !slices.Contains(scaffold.Kinds(), wish.Kind) {
		return nil // Make refuses it
	}
	p.Detected = a.read(ctx, t, p, wish)
	keepSecrets(dir, p.Detected)
	return context.Cause(ctx)
}

// keepSecrets opens each variable of a container whose value is a secret of the user's .env: abl
// refuses settings that hold one.
func keepSecrets(dir string, r *detect.Report) {
	vars, _, err := config.ReadEnv(filepath.Join(dir, config.EnvFile))
	if err != nil {
		return // there is none, or the run that reads it says what is wrong
	}
	r.Facts = slices.DeleteFunc(r.Facts, func(f detect.Fact) bool {
		if !strings.Contains(f.Key, ".env.") {
			return false
		}
		for name, value := range vars {
			if redact.Holds(name, value) && (f.Value == value || len(value) >= redact.Shortest && strings.Contains(f.Value, value)) {
				why := "its value is a secret of your .env, which no container gets: write one that is made for tests"
				r.Open = append(r.Open, detect.Open{Key: f.Key, Why: why})
				return true
			}
		}
		return false
	})
}

// sourceTree is the source that is there, nil for none: what the repository has committed, or the
// files in the Builder's directory.
func sourceTree(dir string, p *scaffold.Plan) (*detect.Tree, error) {
	top, paths := filepath.Join(dir, p.Repo), []string(nil)
	if p.Repo == "" {
		top = filepath.Join(dir, cmp.Or(p.Src, config.Default().Directories.Src))
		paths = filesBelow(top)
	} else {
		from, err := git.OpenOrigin(top)
		if err != nil {
			return nil, err
		}
		if paths, err = from.Files(nil, detect.MaxPaths); err != nil {
			return nil, err
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	return detect.New(paths, func(name string, max int64) ([]byte, error) { return hostfs.Read(top, name, max) }), nil
}

// filesBelow lists the regular files below a directory, and no more than are read.
func filesBelow(dir string) (paths []string) {
	enough := errors.New("enough")
	_ = hostfs.Walk(dir, ".git", func(e hostfs.Entry) error { // what cannot be listed is not read
		if len(paths) >= detect.MaxPaths {
			return enough
		}
		if e.Kind() == unix.S_IFREG {
			paths = append(paths, e.Path())
		}
		return nil
	})
	return paths
}

// questions asks the user at a terminal. Without one every answer is empty.
type questions struct {
	in    *cli.Input
	lines chan string
	done  <-chan struct{}
}

func newQuestions(ctx context.Context, in *cli.Input) questions {
	a := questions{in: in, done: ctx.Done()}
	tty := view.Terminal(in.Stdin)
	if tty == nil || in.Bool("json") {
		return a
	}
	a.lines = make(chan string)
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(tty); s.Scan(); {
			select {
			case a.lines <- strings.TrimSpace(s.Text()):
			case <-a.done:
				return
			}
		}
	}()
	return a
}

// ask returns the answer to a question. The number of a choice stands for the choice.
func (a questions) ask(question string, choices []detect.Fact) string {
	if a.lines == nil {
		return ""
	}
	a.in.Say("%s", question)
	for i, f := range choices {
		a.in.Say("  %d: %s (%s)", i+1, f.Value, f.From)
	}
	select {
	case text := <-a.lines:
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= len(choices) {
			return choices[n-1].Value
		}
		return text
	case <-a.done:
		return ""
	}
}

// read reads the tree, and again after each answer that other facts depend on.
func (a questions) read(ctx context.Context, t *detect.Tree, p *scaffold.Plan, wish detect.Wish) *detect.Report {
	r := detect.Read(ctx, t, p.Dir, wish)
	about := func(key string) (detect.Open, bool) {
		i := slices.IndexFunc(r.Open, func(o detect.Open) bool { return o.Key == key })
		if i < 0 {
			return detect.Open{}, false
		}
		return r.Open[i], true
	}
	if o, open := about("source.dir"); open && p.Repo != "" && len(o.Choices) == 1 && t.AllIn(o.Choices[0].Value) && r.Stack == "none" &&
		a.in.String("dir") == "" {
		p.Dir = o.Choices[0].Value
		a.in.Say("note: the only project is in %q, so the work is about that folder; --dir . is for the whole", p.Dir)
		r = detect.Read(ctx, t, p.Dir, wish)
	} else if open && p.Repo != "" {
		dir := a.ask("which folder is the work about? "+o.Why+" (Enter: the whole)", o.Choices)
		if slices.ContainsFunc(o.Choices, func(f detect.Fact) bool { return f.Value == dir }) {
			p.Dir = dir
			r = detect.Read(ctx, t, p.Dir, wish)
		}
	}
	if o, open := about("app.kind"); open {
		kind := a.ask(whichKind+" "+o.Why+" (Enter: it stays open)", nil)
		if slices.Contains(scaffold.Kinds(), kind) {
			wish.Kind, p.Kind = kind, kind
			r = detect.Read(ctx, t, p.Dir, wish)
		}
	}
	if o, open := about("app.command"); open {
		if text := a.ask("which command starts it? "+o.Why+" (Enter: it stays open)", o.Choices); text != "" {
			r.Answer("app.command", text)
		}
	}
	if o, open := about("app.port"); open {
		text := a.ask("at which port does it listen? "+o.Why+" (Enter: it stays open)", o.Choices)
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= 65535 {
			r.Answer("app.port", text)
		}
	}
	return &r
}

// sayFound reports what the new settings are based on, and what is open in them.
func sayFound(in *cli.Input, p scaffold.Plan) {
	if p.Detected == nil {
		if p.Version != "" {
			in.Say("toolchain: %s %s, as %s says", p.Stack, p.Version, p.File)
		}
		switch {
		case p.Guessed && p.Stack == "none":
			in.Say("no file shows the stack, so it is none; --stack names one")
		case p.Guessed:
			in.Say("no file told the stack, so it is %s; --stack names another", p.Stack)
		}
		if p.Stack == "none" {
			in.Say("the system is taken to be of kind %s; app.kind in .abl/config.yaml changes that", p.Kind)
		}
		return
	}
	r := p.Detected
	if r.Stack == "none" {
		in.Say("no file shows what this is built with, so the stack is none; --stack names one")
	}
	for _, f := range r.Facts {
		if f.From.File != "" && !strings.Contains(f.Key, ".env.") {
			in.Say("found: %s: %s (%s)", f.Key, f.Value, f.From)
		}
	}
	for _, o := range r.Open {
		in.Say("open: %s: %s", o.Key, o.Why)
	}
	for _, text := range r.Notes {
		in.Say("note: %s", text)
	}
}
