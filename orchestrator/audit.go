package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"abl/internal/audit"
	"abl/internal/state"
	"abl/orchestrator/evidence"
	"abl/roles"
	"abl/roles/replay"
)

// requirements returns the specs and contracts that a verdict is about now.
func (l *Loop) requirements() audit.Held {
	h := audit.Held{
		Decided:  time.Now().UTC().Truncate(time.Second),
		Evidence: "required",
		Specs:    []audit.Spec{},
		Clauses:  []audit.Clause{},
	}
	if l.Replay == nil {
		h.Evidence = "off"
	}
	for _, s := range l.Specs.Set.UpTo(l.Number) {
		h.Specs = append(h.Specs, audit.Spec{
			Phase:  s.Number,
			Title:  s.Title,
			File:   l.Project.Rel(s.File),
			SHA256: s.SHA256,
			Bytes:  len(s.Text),
		})
		for _, c := range s.Contracts {
			h.Clauses = append(h.Clauses, audit.Clause{
				ID:      c.ID,
				Phase:   s.Number,
				Line:    c.Line,
				Says:    c.Says(),
				Absence: c.Absence,
			})
		}
	}
	return h
}

// keepAudit writes the audit record of the judged iteration from the files on disk, so that an abl
// that continues after a kill writes the same. now is the state that the phase is about to get.
func (l *Loop) keepAudit(was, now state.Phase, h Happened) error {
	rec := l.turn(roles.Verifier, &was).record()
	f, _, err := roles.Read[Finding](rec, roles.FindingFile)
	earlier, _, rerr := roles.Read[evidence.Finding](rec, roles.RegressionFile)
	if err := errors.Join(err, rerr); err != nil {
		return err
	}
	r := recordOf(f, earlier)
	r.Version, r.Project, r.Phase, r.Title = audit.Version, l.File.Project, l.Number, l.spec().Title
	r.Round, r.Iteration, r.Step, r.Status = was.Round, was.Iteration, was.Step, string(now.Status)
	r.Kind = cmp.Or(l.Kind, "http")
	r.Commits = audit.Commits{Source: was.SrcCommit, Tests: h.Commit}
	if was.SrcCommit != "" {
		if r.Commits.Tree, err = l.Src.TreeHash(was.SrcCommit); err != nil {
			return err
		}
	}
	if f.Verdict == Pass {
		r.Commits.Tag = passedTag(l.Number)
	}
	if r.Calls, r.Replays, err = replay.Trail(l.Project, l.Number, was.Step); err != nil {
		return err
	}
	r.Calls = append([]audit.Call{}, r.Calls...) // never null
	r.Replays = append([]audit.Replay{}, r.Replays...)
	if err := l.Safe.Clean(&r); err != nil {
		return err
	}
	return audit.Save(l.Project, r)
}

// passedTag returns the tag of a phase's pass in both repositories.
func passedTag(phase int) string { return fmt.Sprintf("phase%d/passed", phase) }

// recordOf returns the part of an audit record that comes from the finding.
func recordOf(f Finding, earlier evidence.Finding) audit.Record {
	r := audit.Record{
		Decided:   f.Held.Decided,
		Verdict:   string(f.Verdict),
		Evidence:  f.Held.Evidence,
		ByReplay:  f.ByReplay,
		Missing:   f.Missing,
		Notes:     f.Notes,
		Entries:   f.Entries,
		Specs:     f.Held.Specs,
		Contracts: []audit.Contract{},
		Strength:  f.Evidence.Strength,
	}
	for _, c := range earlier.Contracts {
		r.Earlier = append(r.Earlier, audit.Earlier{Contract: c.Contract, Suite: c.Suite, Finding: c.Finding})
	}
	for _, clause := range f.Held.Clauses {
		r.Contracts = append(r.Contracts, contractOfRecord(clause, f, earlier))
	}
	return r
}

// contractOfRecord returns the audit record of one contract. It is a fail if anyone found one. It
// is a pass if a replay proves it or, without replays, if the Verifier passes everything.
func contractOfRecord(clause audit.Clause, f Finding, earlier evidence.Finding) audit.Contract {
	c := audit.Contract{Clause: clause, Result: audit.Unknown}
	for _, st := range slices.Concat(earlier.Contracts, f.Evidence.Contracts) {
		if st.Contract == clause.ID {
			c.Finding = st.Finding
		}
	}
	for _, e := range f.Entries {
		if e.Contract == clause.ID {
			c.Entries++
			c.Input, c.Observed = cmp.Or(c.Input, e.Input), cmp.Or(c.Observed, e.Observed)
		}
	}
	switch {
	case c.Is == evidence.Flaky, c.Is == evidence.Failed && slices.Contains(c.Runs, "not ok"):
		c.Result, c.By = audit.Fail, audit.ByReplay
	case c.Entries > 0 && f.ByReplay:
		c.Result, c.By = audit.Fail, audit.ByReplay
	case c.Entries > 0:
		c.Result, c.By = audit.Fail, audit.ByVerifier
	case evidence.Proven(c.Finding):
		c.Result, c.By = audit.Pass, audit.ByReplay
	case c.Is == "" && f.Verdict == Pass:
		c.Result, c.By = audit.Pass, audit.ByVerifier
	}
	return c
}
