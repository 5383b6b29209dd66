package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"abl/internal/wording"
)

// line is a parsed command line. The library parses no flags after the first argument.
type line struct {
	name        string  // full name of the command, "abl spec lint"
	at          Command // the command, with the flags of every command
	flags, args []string
	help        bool
	habits      map[string]string // App.Habits
}

// parse splits a command line into the command, its flags and its arguments.
func parse(app *App, words []string) line {
	l := line{name: app.Name, at: app.root(), habits: app.Habits}
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch name, isFlag := flagName(word); {
		case word == "--":
			l.args = append(l.args, words[i+1:]...)
			return l
		case name == "help" || name == "h" || word == "help" && l.name == app.Name && len(l.args) == 0:
			l.help = true
		case isFlag:
			l.flags = append(l.flags, word)
			if f := l.at.flag(name); f.Value != "" && !strings.Contains(word, "=") && i+1 < len(words) {
				i++
				l.flags = append(l.flags, words[i])
			}
		default:
			called := func(c Command) bool { return c.Name == word || slices.Contains(c.Aliases, word) }
			if sub := slices.IndexFunc(l.at.Subs, called); sub >= 0 && len(l.args) == 0 {
				l.at = l.at.Subs[sub]
				l.at.Flags, l.name = slices.Concat(l.at.Flags, app.Flags), l.name+" "+l.at.Name
				continue
			}
			l.args = append(l.args, word)
		}
	}
	return l
}

// root returns the program as a command.
func (app *App) root() Command {
	root := Command{Usage: app.Usage, Long: app.Long}
	if app.Root != nil {
		root = *app.Root
	}
	root.Flags = slices.Concat(root.Flags, app.Flags, []Flag{{Name: "version", Usage: "print the version"}})
	root.Subs = slices.Concat(root.Subs, app.Commands)
	for _, t := range app.topics() {
		root.topics = append(root.topics, [2]string{t.Name, t.Usage})
	}
	return root
}

// flagName returns the name of a flag without dashes and value. "-" and negative numbers are arguments,
// not flags.
func flagName(word string) (name string, is bool) {
	if len(word) < 2 || word[0] != '-' || word[1] >= '0' && word[1] <= '9' {
		return "", false
	}
	name, _, _ = strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name, true
}

// flag returns the command's flag of that name or letter, or the zero Flag.
func (c *Command) flag(name string) (f Flag) {
	if i := slices.IndexFunc(c.Flags, func(f Flag) bool { return f.Name == name || f.Short == name }); i >= 0 {
		f = c.Flags[i]
	}
	return f
}

// bounds returns how many arguments the command takes; most is -1 for any number.
func (c *Command) bounds() (least, most int) {
	for _, arg := range strings.Fields(c.Args) {
		if strings.Contains(arg, "...") {
			return least, -1
		}
		if most++; !strings.HasPrefix(arg, "[") {
			least++
		}
	}
	return least, most
}

// run parses the flags with the library, and runs the command.
func (l line) run(ctx context.Context, app *App, in *Input) (err error) {
	defer recovered(in, &err)
	for _, t := range app.topics() {
		if l.help && l.name == app.Name && slices.Equal(l.args, []string{t.Name}) {
			_, err := io.WriteString(in.Stdout, strings.TrimSpace(t.Text)+"\n")
			return err
		}
	}
	if l.help && (l.at.Run != nil || len(l.args) == 0) {
		_, err := io.WriteString(in.Stdout, help(&l.at, l.name))
		return err
	}
	u := &urfave.App{
		Name:        app.Name,
		Flags:       flags(l.at.Flags),
		HideHelp:    true,
		HideVersion: true,
		Reader:      in.Stdin,
		Writer:      in.Stdout,
		ErrWriter:   in.Stderr,
		// Without a date the library reads the program's file, and by default it exits on an error.
		Compiled:       time.Unix(0, 1),
		ExitErrHandler: func(*urfave.Context, error) {},
		OnUsageError:   l.misused,
		Action: func(u *urfave.Context) error {
			in.flags, in.Args, in.at = u, l.args, l.at
			return l.act(ctx, app, in)
		},
	}
	return u.RunContext(ctx, append([]string{app.Name}, l.flags...))
}

func flags(all []Flag) (list []urfave.Flag) {
	for _, f := range all {
		env, names := strings.Fields(f.Env), strings.Fields(f.Short+" "+f.Also)
		if f.Value == "" {
			list = append(list, &urfave.BoolFlag{Name: f.Name, Aliases: names, EnvVars: env})
		} else {
			list = append(list, &urfave.StringFlag{Name: f.Name, Aliases: names, EnvVars: env, Value: f.Default})
		}
	}
	return list
}

// act checks arguments and flag values, and runs the command.
func (l line) act(ctx context.Context, app *App, in *Input) error {
	c, called := l.at, strings.TrimPrefix(strings.TrimPrefix(l.name, app.Name), " ")
	n := len(in.Args)
	least, most := c.bounds()
	switch {
	case l.name == app.Name && in.Bool("version"):
		_, err := fmt.Fprintln(in.Stdout, app.Name, app.Version)
		return err
	case c.Run == nil && n > 0:
		above := strings.TrimPrefix(called+" ", " ")
		known := names(c.Subs)
		for _, t := range c.topics {
			if l.help {
				known = append(known, t[0])
			}
		}
		near := guess(`"`+above+`%s"`, in.Args[0], known)
		return WithHint(cmp.Or(l.habit(above+in.Args[0]), near), "unknown command %q", above+in.Args[0])
	case c.Run == nil && l.name == app.Name:
		_, err := io.WriteString(in.Stdout, help(&c, l.name))
		return err
	case c.Run == nil:
		return Usagef("%s needs a command: %s", called, wording.OneOf(names(c.Subs)))
	case n < least:
		return Usagef("%s needs %s", called, c.Args)
	case most == 0 && n > 0:
		return WithHint(l.habit(called+" "+in.Args[0]), "%s takes no arguments, but got %q", called, in.Args[0])
	case most >= 0 && n > most:
		return Usagef("%s takes only %s, but got %q", called, c.Args, in.Args[most])
	}
	for i, arg := range in.Args { // Values are for each argument of "[X...]", otherwise for the first
		if len(c.Values) > 0 && !c.Open && !slices.Contains(c.Values, arg) && (i == 0 || most < 0) {
			return WithHint(guess("%s", arg, c.Values), "%s takes %s, not %q", called, wording.OneOf(c.Values), arg)
		}
	}
	for _, f := range c.Flags {
		if err := f.check(in); err != nil {
			return err
		}
	}
	return c.Run(ctx, in)
}

// check sets To. It returns an error unless the flag has one of its valid values.
func (f Flag) check(in *Input) (err error) {
	value, as := in.String(f.Name), "--"+f.Name
	switch to := f.To.(type) {
	case *bool:
		*to = in.Bool(f.Name)
	case *string:
		*to = value
	case *int:
		if *to, err = in.Int(f.Name); err == nil && in.Set(f.Name) && *to < 1 {
			err = Usagef("%s must be a positive number, not %d", as, *to)
		}
		return err
	}
	if len(f.Values) == 0 || f.Open || !in.Set(f.Name) || slices.Contains(f.Values, value) {
		return nil
	}
	if f.Env != "" && os.Getenv(f.Env) != "" {
		as = f.Env + " or " + as
	}
	return WithHint(guess("--"+f.Name+" %s", value, f.Values), "%s must be %s, not %q", as, wording.OneOf(f.Values), value)
}

var mistake = regexp.MustCompile(`^flag (provided but not defined|needs an argument): -(.*)$`)

// misused rewords the library's usage errors, and suggests the flag that was probably meant.
func (l line) misused(_ *urfave.Context, err error, _ bool) error {
	m := mistake.FindStringSubmatch(err.Error())
	if m == nil {
		return Usagef("%s", err)
	}
	typed := slices.IndexFunc(l.flags, func(word string) bool { name, _ := flagName(word); return name == m[2] })
	word, _, _ := strings.Cut(l.flags[typed], "=")
	if f := l.at.flag(m[2]); f.Name != "" {
		return Usagef("%s needs a value: %s", word, f.Value)
	}
	if f := l.at.flag(m[2][:1]); f.Value != "" && !strings.HasPrefix(word, "--") {
		return WithHint(fmt.Sprintf("did you mean -%s %s?", f.Short, m[2][1:]), "unknown flag %q of %s", word, l.name)
	}
	if hint := l.habit(word); hint != "" {
		return WithHint(hint, "unknown flag %q of %s", word, l.name)
	}
	known := []string{"--help"}
	for _, f := range l.at.Flags {
		known = append(known, "--"+f.Name)
	}
	return WithHint(guess("%s", "--"+m[2], known), "unknown flag %q of %s", word, l.name)
}

// habit returns the hint for a word of other tools, "" for any other.
func (l line) habit(typed string) string {
	above, last := "", typed
	if at := strings.LastIndexByte(typed, ' ') + 1; at > 0 {
		above, last = typed[:at], typed[at:]
	}
	hint := l.habits[typed]
	if _, err := strconv.Atoi(last); err == nil {
		hint = strings.ReplaceAll(l.habits[above+"N"], "N", last)
	}
	if hint == "" {
		return ""
	}
	return "use " + hint
}

// guess returns a "did you mean" hint, "" if no known word is similar.
func guess(format, word string, known []string) string {
	near := wording.Near(word, known)
	if near == "" {
		return ""
	}
	return "did you mean " + fmt.Sprintf(format, near) + "?"
}

func names(commands []Command) (all []string) {
	for _, c := range commands {
		all = append(all, c.Name)
	}
	return all
}
