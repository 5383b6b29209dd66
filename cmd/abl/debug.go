package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/roles/agent"
	"abl/roles/environment"
)

func debugCommand() cli.Command {
	var name string
	return cli.Command{
		Name:  "debug",
		Group: cli.Maintenance,
		Usage: "show how abl reads a file",
		Subs: []cli.Command{{
			Name:  "usage",
			Args:  "FILE",
			Usage: "show the ledger rows that abl reads from an agent's output",
			Flags: []cli.Flag{
				{
					Name:    "agent",
					To:      &name,
					Value:   "NAME",
					Default: "gemini",
					Values:  agent.Names(),
					Open:    true,
					Usage:   "the agent that printed it; one from config.yaml works too",
				},
				{Name: "exit", Value: "N", Default: "0", Usage: "the agent's exit code"},
				cli.JSONFlag(),
			},
			Run: func(_ context.Context, in *cli.Input) error { return debugUsage(in, name) },
		}},
	}
}

// usageReport is what `abl debug usage --json` prints.
type usageReport struct {
	Finished bool          `json:"finished"`
	Reason   string        `json:"reason,omitempty"`
	Session  string        `json:"session,omitempty"`
	Requests *int64        `json:"requests"` // null if the output does not report it
	Usage    []agent.Usage `json:"usage"`
}

func debugUsage(in *cli.Input, name string) error {
	code, err := in.Int("exit")
	if err != nil {
		return err
	}
	data, err := os.ReadFile(in.Args[0])
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot read the output: %w", err),
			"name a file with the output of an agent, such as .abl/logs/calls/CALL/stdout")
	}
	who, err := namedAgent(in, name)
	if err != nil {
		return err
	}
	res := agent.Usages(who, data, code)
	out := usageReport{Finished: res.Finished, Reason: res.Reason, Session: res.Session, Usage: res.Usage}
	if res.Requests >= 0 {
		out.Requests = &res.Requests
	}
	return in.Show(out, func(w io.Writer) {
		fmt.Fprintf(w, "finished: %v %s\n", out.Finished, out.Reason)
		for _, u := range out.Usage {
			fmt.Fprintf(w, "%s: input %s, cached %s, candidates %s, thoughts %s, tool %s, total %s\n", u.Model,
				count(u.Input), count(u.Cached), count(u.Candidates), count(u.Thoughts), count(u.Tool), count(u.Total))
		}
	})
}

// namedAgent returns the agent of --agent. Only an agent of config.yaml needs a project.
func namedAgent(in *cli.Input, name string) (agent.Agent, error) {
	a, err := agent.Find(name)
	if err == nil {
		return a, nil
	}
	if s, none := project.Open(in); none == nil && s.Conf.Agents[name].Command != "" {
		return environment.Agents{Conf: s.Conf, Root: s.Paths.Root}.Find(name)
	}
	return a, exit.With(exit.Usage, err,
		"a project's config.yaml can define more agents (docs/agents.md); -C names the project")
}

// count formats a number of tokens, "unknown" for nil.
func count(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
