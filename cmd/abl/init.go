package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/orchestrator/project"
	"abl/orchestrator/scaffold"
	"abl/orchestrator/workspace"
)

func initCommand() cli.Command {
	return cli.Command{
		Name: "init", Group: cli.Starting, Usage: "make this directory a project",
		Long: `Writes .abl/ with a configuration and an example spec, prompts/, .env.example,
and adds lines to .gitignore. It asks nothing, never overwrites, and is safe to
run again: what is there is kept.`,
		Examples: "abl init\nabl init --stack python\nabl init --src app",
		Flags: []cli.Flag{
			{Name: "stack", Value: "NAME", Values: scaffold.Stacks(), Usage: "what the project is built with; otherwise the files that are there tell"},
			{Name: "src", Value: "DIR", Usage: "the Builder's directory, with a history of its own; src unless given"},
			{Name: "json", Usage: "one JSON document"},
		},
		Run: runInit,
	}
}

func runInit(_ context.Context, in *cli.Input) error {
	dir := in.String("project")
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault(exit.Usage, fmt.Errorf("cannot make a project: %w", err), "")
	}
	defer root.Close()
	o := scaffold.Options{Stack: in.String("stack"), Src: in.String("src")}
	if s, err := open(in); err == nil && sameDir(s.project.Root, dir) {
		o.Src, o.Tests = s.conf.Directories.Src, s.conf.Directories.Tests
	}
	tracked := func(sub string) (bool, error) {
		yes, err := workspace.Tracks(dir, sub)
		if err != nil { // what cannot be checked is said to be unchecked, and stops nobody
			fmt.Fprintf(in.Stderr, "abl: warning: cannot tell whether git tracks %s: %v\n", sub, err)
		}
		return yes, nil
	}
	p, err := scaffold.Make(root.FS(), tracked, o)
	if err != nil {
		return fault(exit.Usage, err, "")
	}
	if err := scaffold.Apply(root, p.Ops); err != nil {
		return err
	}
	if in.Bool("json") {
		return json.NewEncoder(in.Stdout).Encode(p.Ops)
	}
	for _, op := range p.Ops {
		fmt.Fprintln(in.Stdout, op)
	}
	if p.Guessed {
		fmt.Fprintf(in.Stderr, "abl: no file told the stack, so it is %s; --stack names another\n", p.Stack)
	}
	fmt.Fprintln(in.Stderr, "abl: next: write .abl/project.md and .abl/specs/phase1.md, put GEMINI_API_KEY=… into .env, then abl phase 1")
	return nil
}

// sameDir says whether two paths are the same directory.
func sameDir(a, b string) bool {
	real, err := project.Real(b)
	return err == nil && real == a
}
