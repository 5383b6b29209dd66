package main

import (
	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
)

func specCommand() cli.Command {
	json := cli.Flag{Name: "json", Usage: "one JSON document (docs/json.md)"}
	return cli.Command{
		Name: "spec", Group: cli.Looking, Usage: "read the specs: what is wrong with them, what became of each contract",
		Subs: []cli.Command{
			{
				Name: "lint", Args: "[N]", MaxArgs: 1, Usage: "name what is vague, missing, said twice or contradictory",
				Long: `Reads the specs of all phases, or of phase N, as a careful person would. Errors
stop a phase before anything is spent, warnings do not. docs/specs.md explains
the codes.`,
				Examples: "abl spec lint\nabl spec lint 2 --json",
				Flags:    []cli.Flag{json, {Name: "strict", Usage: "end with exit code 2 on warnings too"}},
				Run:      runSpecLint,
			},
			draftCommand(),
			{
				Name: "list", Usage: "show every contract, its id and its last result in each phase",
				Flags: []cli.Flag{json}, Run: phase.Opened(runSpecList),
			},
		},
	}
}
