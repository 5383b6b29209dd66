package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"abl/cmd/internal/cli"
	"abl/internal/sanitize"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
)

// standing is one phase as `abl status` shows it.
type standing struct {
	Phase     int       `json:"phase"`
	Title     string    `json:"title"`
	Contracts int       `json:"contracts"`
	Status    string    `json:"status"`
	Iteration int       `json:"iteration,omitempty"`
	Round     int       `json:"round,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
	Failed    []string  `json:"failed,omitempty"`
	Note      string    `json:"note,omitempty"`
	Ended     time.Time `json:"ended,omitzero"`
}

func statusCommand() cli.Command {
	return cli.Command{
		Name: "status", Group: cli.Looking, Usage: "show where every phase stands",
		Flags: []cli.Flag{{Name: "json", Usage: "one JSON document"}},
		Run: func(_ context.Context, in *cli.Input) error {
			s, err := open(in)
			if err != nil {
				return err
			}
			f, err := s.state()
			if err != nil {
				return err
			}
			all := standings(f, s.specs())
			if in.Bool("json") {
				return json.NewEncoder(in.Stdout).Encode(map[string]any{"project": s.project.Root, "phases": all})
			}
			return printStandings(in.Stdout, all)
		},
	}
}

// standings lists every phase that has a spec.
func standings(f *state.File, specs spec.Set) []standing {
	all := []standing{}
	for _, n := range specs.Numbers() {
		this, sound := specs.Phase(n)
		st := standing{Phase: n, Title: this.Title, Contracts: len(this.Contracts), Status: string(state.Ready)}
		if !sound {
			st.Status, st.Note = "unsound", specs.Check(n)[0].String()
		}
		if p := f.Phases[fmt.Sprint(n)]; p != nil {
			st.Status, st.Iteration, st.Round, st.Verdict, st.Ended = string(p.Status), p.Iteration, p.Round, p.LastVerdict, p.Ended
			for _, e := range p.Failed {
				st.Failed = append(st.Failed, e.Spec)
			}
			if p.SpecSHA != "" && p.SpecSHA != this.SHA256 {
				st.Note = "its spec changed since"
			}
			if p.ReportMissing {
				st.Note = "the builder left no report"
			}
		}
		all = append(all, st)
	}
	return all
}

func printStandings(w io.Writer, all []standing) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no phase yet: write .abl/specs/phase1.md")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "PHASE\tSTATUS\tITERATION\tCONTRACTS\tTITLE")
	for _, s := range all {
		iteration := "-"
		if s.Iteration > 0 {
			iteration = fmt.Sprint(s.Iteration)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\n", s.Phase, s.Status, iteration, s.Contracts, sanitize.String(s.Title))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range all {
		for _, f := range s.Failed {
			fmt.Fprintf(w, "phase %d fails: %s\n", s.Phase, sanitize.String(f))
		}
		if s.Note != "" {
			fmt.Fprintf(w, "phase %d: %s\n", s.Phase, sanitize.String(s.Note))
		}
	}
	return nil
}
