package main

import (
	"context"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/project"
	"abl/cmd/internal/submit"
	"abl/cmd/internal/trust"
	"abl/cmd/internal/view"
	"abl/internal/wording"
)

func trustCommand() cli.Command {
	var revoke bool
	return cli.Command{
		Name:  "trust",
		Group: cli.Maintenance,
		Usage: "accept settings of the repository that act on this machine",
		Long: `Some settings run a command on this machine, open a repository outside the project, or
decide who gets a key. If git tracks the file of such a setting, or another user of this
machine owns it, the file may come from another author: abl refuses to run until you
accept the setting.

Prints these settings with the reason, and records on this machine that you accept their
values. A changed value must be accepted again. --trust or ABL_TRUST=1 accepts them for
one run, for example in CI.`,
		Examples: "abl trust\nabl trust --revoke",
		Flags: []cli.Flag{
			cli.JSONFlag(),
			{Name: "revoke", To: &revoke, Usage: "stop accepting all of these settings"},
		},
		Run: project.Looking(func(ctx context.Context, s *project.Project) error {
			return runTrust(ctx, s, revoke)
		}),
	}
}

// trusted is a setting in the output of `abl trust --json`.
type trusted struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Why    string `json:"why"`
}

func runTrust(ctx context.Context, s *project.Project, revoke bool) error {
	all, err := trust.Values(ctx, s.Paths.Root, s.Conf, submit.Scripts(s.Paths.Root)...)
	if err == nil && revoke {
		err = trust.Record(s.Paths.Root, nil)
	} else if err == nil {
		err = trust.Record(s.Paths.Root, all)
	}
	if err != nil {
		return err
	}
	rows := []trusted{}
	for _, v := range all {
		rows = append(rows, trusted{v.Key, v.Text, v.Place(), v.Why})
	}
	t := view.Table{Header: []string{"SOURCE", "SETTING", "WHAT IT DOES"}, Flex: 2}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Source, r.Key + "=" + wording.OneLine(r.Value), r.Why})
	}
	n := wording.Count(len(rows), "setting")
	switch {
	case s.In.Bool("json"):
		return s.In.JSON(rows)
	case len(rows) == 0:
		_, err := fmt.Fprintln(s.In.Stdout,
			"nothing to accept: no file of such a setting is tracked by git or owned by another user")
		return err
	case revoke:
		return s.In.ShowTable(rows, t, n+" no longer accepted")
	}
	return s.In.ShowTable(rows, t, fmt.Sprintf("%s accepted for %s; a changed value must be accepted again", n,
		s.Paths.Root))
}
