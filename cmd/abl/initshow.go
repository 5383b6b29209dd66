package main

import (
	"fmt"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/scaffold"
)

// initReport is what `abl init --json` prints.
type initReport struct {
	Stack   string     `json:"stack"`
	Guessed bool       `json:"guessed"` // nobody asked for the stack, and no file told
	Src     string     `json:"src"`
	Offer   string     `json:"offer,omitempty"` // another name for src, when the repository around the project tracks it
	Steps   []initStep `json:"steps"`
}

type initStep struct {
	Do    string   `json:"do"` // write, add, keep or note
	Path  string   `json:"path"`
	Lines []string `json:"lines,omitempty"`
	Text  string   `json:"text,omitempty"`
}

func showInit(in *cli.Input, p scaffold.Plan) error {
	if in.Bool("json") {
		r := initReport{Stack: p.Stack, Guessed: p.Guessed, Src: p.Src, Offer: p.Offer, Steps: []initStep{}}
		for _, op := range p.Ops {
			r.Steps = append(r.Steps, initStep{string(op.Kind), op.Path, op.Lines, op.Text})
		}
		return in.JSON(r)
	}
	written := false
	for _, op := range p.Ops {
		fmt.Fprintln(in.Stdout, op)
		written = written || op.Kind == scaffold.Write && op.Path == ".abl/config.yaml"
	}
	if written && p.Guessed {
		in.Say("no file told the stack, so it is %s; --stack names another", p.Stack)
	}
	if written {
		in.Say("next: write .abl/project.md and .abl/specs/phase1.md, put GEMINI_API_KEY=… into .env, then abl phase 1")
	}
	return nil
}
