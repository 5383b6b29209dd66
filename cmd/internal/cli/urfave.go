package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	urfave "github.com/urfave/cli/v2"
)

// run hands a line to the flag library and, through it, to the command.
func run(ctx context.Context, app *App, l *line, in *Input) error {
	c := l.command()
	leaf := command(*c, func(u *urfave.Context) error {
		in.flags = u
		if err := checkEnv(append(slices.Clone(c.Flags), app.Flags...), in); err != nil {
			return err
		}
		return c.Run(ctx, in)
	})
	u := &urfave.App{
		Name: app.Name, Flags: flags(app.Flags), Commands: []*urfave.Command{leaf},
		HideHelp: true, HideVersion: true, DisableSliceFlagSeparator: true,
		Reader: in.Stdin, Writer: in.Stderr, ErrWriter: in.Stderr,
		// Without a date the library looks the program's file up.
		Compiled:       time.Unix(0, 1),
		ExitErrHandler: func(*urfave.Context, error) {}, // it would leave the process
		OnUsageError:   misused,
	}
	argv := append([]string{app.Name}, l.global...)
	argv = append(append(append(argv, leaf.Name), l.flags...), "--")
	return u.RunContext(ctx, append(argv, l.args...))
}

// command is the one command of this run; the way to it was found already.
func command(c Command, do urfave.ActionFunc) *urfave.Command {
	return &urfave.Command{Name: cmp.Or(c.Name, "run"), Flags: flags(c.Flags), HideHelp: true, Action: do, OnUsageError: misused}
}

// misused is reached by values that only the library looks at: variables.
func misused(_ *urfave.Context, err error, _ bool) error { return Usagef("%s", err) }

func flags(all []Flag) []urfave.Flag {
	var list []urfave.Flag
	for _, f := range all {
		var env []string
		if f.Env != "" {
			env = []string{f.Env}
		}
		switch {
		case f.Value == "":
			list = append(list, &urfave.BoolFlag{Name: f.Name, EnvVars: env, Value: f.Default == "true"})
		case f.Multi:
			list = append(list, &urfave.StringSliceFlag{Name: f.Name, EnvVars: env})
		default:
			list = append(list, &urfave.StringFlag{Name: f.Name, EnvVars: env, Value: f.Default})
		}
	}
	return list
}

// checkEnv checks the values of flags that variables have set.
func checkEnv(all []Flag, in *Input) error {
	for _, f := range all {
		if f.Env == "" || len(f.Values) == 0 || f.Multi || !in.Set(f.Name) {
			continue
		}
		if err := allowed(&f, f.Env+" or --"+f.Name, in.String(f.Name)); err != nil {
			return err
		}
	}
	return nil
}
