package main

import (
	"fmt"
	"time"

	"abl/cmd/internal/cli"
	"abl/internal/spec"
	"abl/internal/state"
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
				Flags: []cli.Flag{json}, Run: runSpecList,
			},
		},
	}
}

// keepIDs reads the specs like specs, and remembers the ids of the contracts of
// phases 1 to n, for phase n begins.
func (s *session) keepIDs(n int) spec.Set {
	set, err := spec.Keep(s.project.Specs(), n)
	if err != nil {
		s.in.Warn(fmt.Sprintf("%v; they count for now, and may be others when a spec was edited", err))
	}
	return set
}

// remark tells the person what there is to say about the spec of a phase that
// is about to run and that does not stop it, and what earlier ones have lost.
func (s *session) remark(n int, specs spec.Set, out state.Sink) {
	count := 0
	for _, p := range specs.Lint() {
		if p.Phase == n {
			count++
		} else if p.Code == "lost" && p.Phase < n {
			s.in.Warn(fmt.Sprintf("%s; abl spec lint %d", p.Text, p.Phase))
		}
	}
	if count > 0 {
		out.Emit(state.Event{Time: time.Now().UTC(), Kind: state.Note, Phase: n, Text: fmt.Sprintf("its spec could be better in %s: abl spec lint %d", many(count, "place"), n)})
	}
}
