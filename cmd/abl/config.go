package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
)

// setting is one setting as `abl config --json` shows it.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func configCommand() cli.Command {
	return cli.Command{
		Name: "config", Group: cli.Looking, Usage: "print every setting and where its value comes from",
		Long: `Settings are layered: defaults, .abl/config.yaml, ABL_* in .env, ABL_* in the
environment (ABL_LOOP_CALL_TIMEOUT=10m), flags.`,
		Flags: []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}},
		Run:   phase.Opened(runConfig),
	}
}

func runConfig(_ context.Context, s *phase.Project) error {
	in := s.In
	all := []setting{}
	for _, l := range s.Conf.Lines() {
		all = append(all, setting(l))
	}
	if in.Bool("json") {
		return in.JSON(all)
	}
	t := tabwriter.NewWriter(in.Stdout, 0, 4, 2, ' ', 0)
	for _, l := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\n", l.Key, l.Value, l.Source)
	}
	return t.Flush()
}
