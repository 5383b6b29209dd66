package cli

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"abl/internal/wording"
)

// run hands a line to the flag library and, through it, to the command.
func run(ctx context.Context, app *App, words []string, in *Input) (err error) {
	defer recovered(in, &err)
	root := app.root()
	u := &urfave.App{
		Name: app.Name, Flags: flags(root.Flags), Commands: commands(app, root.Subs, app.Name, in), Action: action(app, root, app.Name, in),
		HideHelpCommand: true, HideVersion: true,
		CustomAppHelpTemplate: help(root, app.Name),
		Reader:                in.Stdin, Writer: in.Stdout, ErrWriter: in.Stderr,
		Compiled:       time.Unix(0, 1),                 // without a date the library looks the program's file up
		ExitErrHandler: func(*urfave.Context, error) {}, // it would leave the process
		OnUsageError:   misused(root, app.Name),
	}
	return u.RunContext(ctx, append([]string{app.Name}, words...))
}

// root is the program itself as a command.
func (app *App) root() *Command {
	root := Command{Usage: app.Usage, Long: app.Long}
	if app.Root != nil {
		root = *app.Root
	}
	root.Flags = slices.Concat(root.Flags, app.Flags, []Flag{{Name: "version", Usage: "print the version"}})
	root.Subs = slices.Concat(root.Subs, app.Commands)
	return &root
}

// commands are those of the library. It tells the commands below one nothing of its flags,
// so that each has those of every command too; and OnUsageError of the program reaches none.
func commands(app *App, all []Command, above string, in *Input) (list []*urfave.Command) {
	for _, c := range all {
		c.Flags = slices.Concat(c.Flags, app.Flags)
		name := above + " " + c.Name
		list = append(list, &urfave.Command{
			Name: c.Name, Aliases: c.Aliases, Hidden: c.Hidden, HideHelpCommand: true,
			Flags: flags(c.Flags), Subcommands: commands(app, c.Subs, name, in),
			CustomHelpTemplate: help(&c, name), Action: action(app, &c, name, in), OnUsageError: misused(&c, name),
		})
	}
	return list
}

func flags(all []Flag) (list []urfave.Flag) {
	for _, f := range all {
		var env, short []string
		if f.Env != "" {
			env = []string{f.Env}
		}
		if f.Short != "" {
			short = []string{f.Short}
		}
		switch {
		case f.Value == "":
			list = append(list, &urfave.BoolFlag{Name: f.Name, Aliases: short, EnvVars: env, Value: f.Default == "true"})
		default:
			list = append(list, &urfave.StringFlag{Name: f.Name, Aliases: short, EnvVars: env, Value: f.Default})
		}
	}
	return list
}

// action checks what the library does not, and runs the command.
func action(app *App, c *Command, name string, in *Input) urfave.ActionFunc {
	return func(u *urfave.Context) error {
		in.flags, in.Args = u, u.Args().Slice()
		switch {
		case u.Bool("version") && name == app.Name:
			_, err := fmt.Fprintln(in.Stdout, app.Name, app.Version)
			return err
		case c.Run == nil && len(in.Args) > 0:
			return unknownCommand(c.Subs, strings.TrimSpace(strings.TrimPrefix(name, app.Name)), in.Args[0])
		case c.Run == nil && name == app.Name:
			return urfave.ShowAppHelp(u)
		case c.Run == nil:
			return WithHint("", "%s needs a command: %s", strings.TrimPrefix(name, app.Name+" "), wording.OneOf(names(c.Subs)))
		}
		for _, f := range c.Flags {
			if err := f.check(in); err != nil {
				return err
			}
		}
		if err := count(c, strings.TrimPrefix(name, app.Name+" "), in.Args); err != nil {
			return err
		}
		return c.Run(u.Context, in)
	}
}

// check wants one of the flag's values.
func (f Flag) check(in *Input) error {
	if len(f.Values) == 0 || f.Open || !in.Set(f.Name) {
		return nil
	}
	value, as := in.String(f.Name), "--"+f.Name
	if slices.Contains(f.Values, value) {
		return nil
	}
	if f.Env != "" && os.Getenv(f.Env) != "" {
		as = f.Env + " or " + as
	}
	hint := ""
	if near := wording.Near(value, f.Values); near != "" {
		hint = "did you mean --" + f.Name + " " + near + "?"
	}
	return WithHint(hint, "%s must be %s, not %q", as, wording.OneOf(f.Values), value)
}

// count checks how many arguments there are.
func count(c *Command, called string, args []string) error {
	switch n := len(args); {
	case n < c.MinArgs:
		return Usagef("%s needs %s", called, c.Args)
	case c.MaxArgs < 0 || n <= c.MaxArgs:
		return nil
	case c.MaxArgs == 0:
		return Usagef("%s takes no arguments, but got %q", called, args[0])
	}
	return Usagef("%s takes %s and no more, but got %q", called, c.Args, args[c.MaxArgs])
}

var (
	notDefined = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	noValue    = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
)

// misused words the library's mistakes, with the flag that was probably meant.
func misused(c *Command, name string) urfave.OnUsageErrorFunc {
	return func(_ *urfave.Context, err error, _ bool) error {
		if m := noValue.FindStringSubmatch(err.Error()); m != nil {
			if f := c.flag(m[1]); f != nil {
				return Usagef("%s needs a value: %s", dashes(m[1]), f.Value)
			}
		}
		m := notDefined.FindStringSubmatch(err.Error())
		if m == nil {
			return Usagef("%s", err)
		}
		word, known := dashes(m[1]), []string{"--help"}
		for _, f := range c.Flags {
			known = append(known, "--"+f.Name)
		}
		if near := wording.Near(word, known); near != "" {
			return WithHint("did you mean "+near+"?", "unknown flag %q of %s", word, name)
		}
		return Usagef("unknown flag %q of %s", word, name)
	}
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func unknownCommand(subs []Command, above, word string) error {
	full := strings.TrimSpace(above + " " + word)
	if near := wording.Near(word, names(subs)); near != "" {
		return WithHint("did you mean \""+strings.TrimSpace(above+" "+near)+"\"?", "unknown command %q", full)
	}
	return WithHint("", "unknown command %q", full)
}

// names are those that may be suggested: of all that are not hidden.
func names(commands []Command) (all []string) {
	for _, c := range commands {
		if !c.Hidden {
			all = append(all, c.Name)
		}
	}
	return all
}
