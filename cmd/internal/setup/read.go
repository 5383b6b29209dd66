package setup

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

const whichKind = "which kind of app is it: http, an HTTP server; tcp, another server; or command, " +
	"a command-line program?"

// readRepository finds the settings of a new project in its source, and asks for open ones on a terminal.
func readRepository(ctx context.Context, in *cli.Input, dir string, p *scaffold.Plan) error {
	if _, err := os.Lstat(filepath.Join(dir, state.Dir)); !errors.Is(err, fs.ErrNotExist) {
		return nil // the project has settings
	}
	t, err := sourceTree(dir, p)
	if err != nil {
		return err
	}
	a := newQuestions(ctx, in)
	if t == nil {
		if p.Stack == "none" && p.Kind == "" {
			p.Kind = a.ask(whichKind+" (Enter: abl decides by the files)", nil)
		}
		return context.Cause(ctx)
	}
	wish := detect.Wish{Stack: p.Stack, Kind: p.Kind}
	if wish.Kind != "" && !slices.Contains(scaffold.Kinds(), wish.Kind) {
		return nil // scaffold.Make refuses it
	}
	p.Detected = a.read(ctx, t, p, wish)
	keepSecrets(dir, p.Detected)
	return context.Cause(ctx)
}

// keepSecrets turns each container variable whose value is a secret of the user's .env into an open one:
// abl refuses settings that contain a secret.
func keepSecrets(dir string, r *detect.Report) {
	vars, _, err := config.ReadEnv(filepath.Join(dir, config.EnvFile))
	if err != nil {
		return // the next run reports a .env that cannot be read
	}
	r.Facts = slices.DeleteFunc(r.Facts, func(f detect.Fact) bool {
		if !strings.Contains(f.Key, ".env.") {
			return false
		}
		for name, value := range vars {
			if redact.Holds(name, value) &&
				(f.Value == value || len(value) >= redact.Shortest && strings.Contains(f.Value, value)) {
				why := "its value is a secret of your .env, and no container gets those: set a value for tests"
				r.Open = append(r.Open, detect.Open{Key: f.Key, Why: why})
				return true
			}
		}
		return false
	})
}

// sourceTree returns the existing source: the committed files of the repository, or the files in the
// Builder's directory. It returns nil if there are no files.
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

// filesBelow lists the regular files below a directory, at most detect.MaxPaths.
func filesBelow(dir string) (paths []string) {
	enough := errors.New("enough")
	_ = hostfs.Walk(dir, ".git", func(e hostfs.Entry) error { // folders that cannot be read are left out
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

// questions asks the user on a terminal. Without a terminal every answer is empty.
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

// ask returns the answer to a question. The user can answer with the number of a choice.
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

// read finds the settings in the tree, asks for open ones, and reads again after each answer that other
// settings depend on.
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
		a.in.Say("note: the only project is in %q, so abl uses that folder; --dir . uses the whole repository", p.Dir)
		r = detect.Read(ctx, t, p.Dir, wish)
	} else if open && p.Repo != "" {
		dir := a.ask("which folder do you want to work on? "+o.Why+" (Enter: the whole repository)", o.Choices)
		if slices.ContainsFunc(o.Choices, func(f detect.Fact) bool { return f.Value == dir }) {
			p.Dir = dir
			r = detect.Read(ctx, t, p.Dir, wish)
		}
	}
	if o, open := about("app.kind"); open {
		kind := a.ask(whichKind+" "+o.Why+" (Enter: leave it open)", nil)
		if slices.Contains(scaffold.Kinds(), kind) {
			wish.Kind, p.Kind = kind, kind
			r = detect.Read(ctx, t, p.Dir, wish)
		}
	}
	if o, open := about("app.command"); open {
		if text := a.ask("which command starts it? "+o.Why+" (Enter: leave it open)", o.Choices); text != "" {
			r.Answer("app.command", text)
		}
	}
	if o, open := about("app.port"); open {
		text := a.ask("on which port does it listen? "+o.Why+" (Enter: leave it open)", o.Choices)
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= 65535 {
			r.Answer("app.port", text)
		}
	}
	return &r
}

// printFound prints the source of each new setting, and the open ones.
func printFound(in *cli.Input, p scaffold.Plan) {
	if p.Detected == nil {
		if p.File != "" {
			in.Say("toolchain: %s %s (%s)", p.Stack, p.Version, p.File)
		}
		switch {
		case p.Guessed && p.Stack == "none":
			in.Say("no file shows the language; set it with --stack")
		case p.Guessed:
			in.Say("no file shows the language, so abl assumes %s; --stack sets another", p.Stack)
		}
		if p.Stack == "none" {
			in.Say("abl assumes that the system is of kind %s; app.kind in .abl/config.yaml changes that", p.Kind)
		}
		return
	}
	r := p.Detected
	if r.Stack == "none" {
		in.Say("no file shows a language that abl recognizes; --stack sets one")
	}
	for _, f := range r.Facts {
		if f.From.File != "" && !strings.Contains(f.Key, ".env.") {
			in.Say("found: %s: %s (%s)", f.Key, f.Value, f.From)
		}
	}
	printOpen(in, r.Open)
	for _, text := range r.Notes {
		in.Say("note: %s", text)
	}
}

// printOpen prints the settings without a value, each with its possible values. Many variables are one line.
func printOpen(in *cli.Input, all []detect.Open) {
	const few = 3
	variables := map[string][]string{} // by section
	for _, o := range all {
		if section, name, ok := strings.Cut(o.Key, ".env."); ok {
			variables[section+".env"] = append(variables[section+".env"], name)
		}
	}
	for _, o := range all {
		section, name, _ := strings.Cut(o.Key, ".env.")
		switch names := variables[section+".env"]; {
		case len(names) <= few:
			in.Say("open: %s: %s", o.Key, o.Why)
		case name == names[0]:
			in.Say("open: %s.env: %d variables, see .abl/config.yaml: %s", section, len(names), strings.Join(names, ", "))
		}
		for i, f := range o.Choices {
			if i == 10 {
				in.Say("choice: %s: %d more", o.Key, len(o.Choices)-i)
				break
			}
			in.Say("choice: %s: %s (%s)", o.Key, f.Value, f.From)
		}
	}
}
