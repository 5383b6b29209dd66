package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/roles"
)

// standings is what `abl status --json` prints.
type standings struct {
	Project  string     `json:"project"`
	Phases   []standing `json:"phases"`
	Problems []string   `json:"problems,omitempty"` // with the specs as a whole
}

// standing is one phase as `abl status` shows it.
type standing struct {
	Phase     int       `json:"phase"`
	Title     string    `json:"title"`
	Contracts int       `json:"contracts"`
	Status    string    `json:"status"` // of docs/state-format.md, or unsound
	Iteration int       `json:"iteration,omitempty"`
	Round     int       `json:"round,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
	Failed    []string  `json:"failed,omitempty"`
	Notes     []string  `json:"notes,omitempty"`
	Ended     time.Time `json:"ended,omitzero"`
}

func statusCommand() cli.Command {
	return cli.Command{
		Name: "status", Group: cli.Looking, Usage: "show where every phase stands",
		Flags: []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}},
		Run:   phase.Opened(phase.Restored(runStatus)),
	}
}

func runStatus(_ context.Context, s *phase.Project) error {
	f, err := s.State()
	if err != nil {
		return err
	}
	calls, err := s.Calls()
	if err != nil {
		return err
	}
	weak := map[int]int{} // by phase: calls on networks that were not proven
	for _, c := range calls {
		proofs, err := c.Proofs()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(proofs, func(p roles.Boundary) bool { return p.Weak != "" }) {
			weak[c.Phase]++
		}
	}
	specs, problems := spec.LoadDir(s.Paths.Specs())
	all := standings{Project: s.Paths.Root, Phases: []standing{}}
	apart := orchestrator.Drift(f, specs)
	for _, n := range specs.Numbers() {
		st := stand(f.Phases[fmt.Sprint(n)], specs, n, problems)
		if err := apart[n]; err != nil {
			st.Notes = append(st.Notes, err.Error()+": "+exit.Hint(err))
		}
		if weak[n] > 0 {
			st.Notes = append(st.Notes, fmt.Sprintf("weak network: %s ran on networks that were not proven, as --%s allowed", wording.Count(weak[n], "call"), cli.WeakFlag))
		}
		all.Phases = append(all.Phases, st)
	}
	for _, p := range problems {
		if p.Fatal && len(all.Phases) > 0 && !slices.Contains(specs.Numbers(), p.Phase) {
			all.Problems = append(all.Problems, p.String())
		}
	}
	return s.In.Show(all, all.print)
}

// stand is where phase n stands; p is nil when it never ran.
func stand(p *state.Phase, specs spec.Set, n int, problems []spec.Problem) standing {
	this, sound := specs.Phase(n)
	st := standing{Phase: n, Title: this.Title, Contracts: len(this.Contracts), Status: string(state.Ready)}
	if p != nil {
		st.Status, st.Iteration, st.Round, st.Verdict, st.Ended = string(p.Status), p.Iteration, p.Round, p.LastVerdict, p.Ended
		for _, e := range p.Failed {
			st.Failed = append(st.Failed, e.Spec)
		}
		if sound && p.Status != state.Passed && p.Status != state.Stale && p.SpecSHA != "" && p.SpecSHA != this.SHA256 {
			st.Notes = append(st.Notes, "its spec changed since")
		}
		if p.ReportMissing {
			st.Notes = append(st.Notes, "the builder left no report")
		}
		if p.Note != "" {
			st.Notes = append(st.Notes, p.Note)
		}
		if o := p.Outage; o != nil && !o.Until.IsZero() {
			st.Notes = append(st.Notes, fmt.Sprintf("waits since %s for what ended its last call (%s); it tries again at %s UTC, or when abl phase runs after that",
				o.Since.UTC().Format(time.TimeOnly), o.Class, o.Until.UTC().Format(time.DateTime)))
		}
	}
	if !sound {
		st.Status = "unsound"
	}
	for _, problem := range problems {
		if problem.Phase == n && problem.Fatal {
			st.Notes = append(st.Notes, problem.String())
		}
	}
	return st
}

func (all standings) print(w io.Writer) {
	if len(all.Phases) == 0 {
		fmt.Fprintln(w, "no phase yet: write .abl/specs/phase1.md")
		return
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "PHASE\tSTATUS\tITERATION\tCONTRACTS\tTITLE")
	for _, s := range all.Phases {
		iteration := "-"
		if s.Iteration > 0 {
			iteration = fmt.Sprint(s.Iteration)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\n", s.Phase, s.Status, iteration, s.Contracts, wording.OneLine(s.Title))
	}
	t.Flush()
	for _, s := range all.Phases {
		for _, f := range s.Failed {
			fmt.Fprintf(w, "phase %d fails: %s\n", s.Phase, wording.OneLine(f))
		}
		for _, note := range s.Notes {
			fmt.Fprintf(w, "phase %d: %s\n", s.Phase, wording.OneLine(note))
		}
	}
	for _, p := range all.Problems {
		fmt.Fprintf(w, "specs: %s\n", wording.OneLine(p))
	}
}
