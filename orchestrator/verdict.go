package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/wording"
	"abl/orchestrator/evidence"
	"abl/roles/app"
)

// Evidence is the input of a verdict.
type Evidence struct {
	AppFailed string              // how the app failed to start
	Regressed []failedspecs.Entry // contracts of earlier phases that failed in a replay
	File      failedspecs.Result  // of failed_specs.md; a missing or empty file is failedspecs.Pass
	FileError string              // why the file could not be read
	Class     outcome.Outcome     // how the Verifier's call ended
	Reason    string
	Report    string      // this call's run report, "" without one
	Changed   []string    // source paths that changed during the call
	Spec      int         // the phase whose spec changed during the call, or 0
	Ends      app.AppEnds // of the app during the call
}

// Finding is the verdict on one iteration, with its reasons.
type Finding struct {
	Verdict Verdict             `json:"verdict"`
	Entries []failedspecs.Entry `json:"entries,omitempty"`
	Missing []string            `json:"missing,omitempty"`
	Notes   []string            `json:"notes,omitempty"` // for the user, such as incomplete entries

	ByReplay bool             `json:"by_replay,omitempty"` // abl wrote the entries
	Evidence evidence.Finding `json:"evidence,omitzero"`   // result of the replays; without a verdict, no replay was made
	Held     audit.Held       `json:"held,omitzero"`       // the specs and contracts of the verdict
}

// appContract is the contract of an app that does not start.
var appContract = failedspecs.Entry{Spec: "start the app → ready on its port",
	Input: "the command of the app section, in a fresh copy of the commit"}

// Decide returns the verdict. A complete entry of a call that had its app to the end is always a
// fail. A pass needs that nothing is missing. Everything else is Unknown.
func Decide(e Evidence) Finding {
	if e.AppFailed != "" {
		entry := appContract
		entry.Observed, _, _ = strings.Cut(e.AppFailed, "\n") // the Verifier must not see the app's output
		return Finding{Verdict: Fail, Entries: []failedspecs.Entry{entry}, ByReplay: true}
	}
	if len(e.Regressed) > 0 {
		return Finding{Verdict: Fail, Entries: e.Regressed, ByReplay: true}
	}
	notes := append(e.File.Notes(failedspecs.FileName), e.Ends.Other...)
	var entries []failedspecs.Entry
	theirs := e.File.Kind == failedspecs.Fail && !lostItsApp(e.Class)
	if theirs {
		entries = slices.Clone(e.File.Entries)
	}
	if len(e.Ends.Broke) > 0 {
		entries = append(entries, evidence.Ended("the requests of the Verifier, up to then", e.Ends.Broke))
	}
	if len(entries) > 0 {
		return Finding{Verdict: Fail, Entries: entries, Notes: notes, ByReplay: !theirs}
	}
	missing := missing(e)
	if len(missing) > 0 {
		return Finding{Verdict: Unknown, Missing: missing, Notes: notes}
	}
	return Finding{Verdict: Pass, Notes: notes}
}

// lostItsApp reports whether the call had no app to test, or not the intended one. Its entries are
// ignored, and it is repeated.
func lostItsApp(c outcome.Outcome) bool {
	return c == outcome.EngineGone || c == outcome.AppGone || c == outcome.Unproven
}

// missing returns what a valid pass lacks, in sentences for the Verifier.
func missing(e Evidence) (all []string) {
	if e.Class != outcome.Done {
		all = append(all, "the call did not end properly: "+e.Reason)
	}
	if e.FileError != "" {
		all = append(all, failedspecs.FileName+" "+e.FileError)
	}
	if e.File.Kind == failedspecs.Malformed {
		all = append(all, failedspecs.FileName+" exists and has no complete entry (SPEC:, INPUT:, OBSERVED:)")
	}
	if e.Report == "" {
		all = append(all, "the run report of this call is missing from verifier_reports/")
	}
	if len(e.Changed) > 0 {
		all = append(all, fmt.Sprintf("the source changed while it was tested (%s)", e.Changed[0]))
	}
	if e.Spec > 0 {
		all = append(all, fmt.Sprintf("the spec of phase %d changed while it was tested", e.Spec))
	}
	return all
}

func (v turn) evidence(ctx context.Context) (Evidence, error) {
	if v.p.AppFailed != "" || len(v.p.Regressed) > 0 {
		return Evidence{AppFailed: v.p.AppFailed, Regressed: v.p.Regressed}, nil
	}
	ev := Evidence{Class: outcome.Done, Report: "of no call", Spec: v.outdated(v.p)}
	ev.File.Kind = failedspecs.Pass
	if v.p.Recheck {
		return v.unmovedSource(ctx, ev)
	}
	o, ok, err := v.record().Outcome()
	if err != nil {
		return Evidence{}, err
	}
	if !ok {
		return Evidence{}, fmt.Errorf("cannot judge: the record of call %s is missing", v.key)
	}
	ev.Class, ev.Reason, ev.Report = o.Class, o.Reason, o.Report
	if o.Class != outcome.AppGone && o.Class != outcome.EngineGone { // these were ended from outside
		if ev.Ends, err = app.EndsOf(v.Project, v.key); err != nil {
			return ev, err
		}
	}
	data, err := hostfs.Read(v.Project.Tests, failedspecs.FileName, failedspecs.MaxBytes)
	switch {
	case err == nil:
		ev.File = failedspecs.In(v.Specs.Set.UpTo(v.Number)).Name(failedspecs.Parse(v.Safe.Bytes(data)))
	case errors.Is(err, hostfs.ErrTooLarge):
		ev.FileError = fmt.Sprintf("is larger than %d KiB, which is more than abl reads: write fewer or shorter entries",
			failedspecs.MaxBytes>>10)
	case !errors.Is(err, hostfs.ErrAbsent):
		ev.FileError = "is not a readable plain file"
	}
	return v.unmovedSource(ctx, ev)
}

// unmovedSource adds the changes of the source since its commit.
func (v turn) unmovedSource(ctx context.Context, ev Evidence) (_ Evidence, err error) {
	if ev.Changed, err = v.Src.Differs(ctx, ""); err != nil {
		return ev, err
	}
	tip, err := v.Src.Tip()
	if err == nil && tip != v.p.SrcCommit {
		ev.Changed = append(ev.Changed, "a new commit")
	}
	return ev, err
}

// summary returns the verdict in one line.
func summary(f Finding) string {
	switch {
	case f.Verdict == Fail && len(f.Entries) == 1:
		return "1 contract fails: " + f.Entries[0].Spec
	case f.Verdict == Fail:
		return fmt.Sprintf("%d contracts fail, first: %s", len(f.Entries), f.Entries[0].Spec)
	case f.Verdict == Unknown:
		return f.Missing[0]
	}
	return "nothing failed" + allowed(f.Evidence)
}

// allowed lists the contracts of a pass that count although their tests are weak or abl did not read
// a response, "" without any.
func allowed(found evidence.Finding) (text string) {
	for _, is := range []string{evidence.Weak, evidence.NotRead} {
		var all []string
		for _, st := range found.Contracts {
			if st.Is == is {
				all = append(all, st.Contract+" ("+st.Why+")")
			}
		}
		if len(all) > 0 {
			text += "; " + is + ": " + wording.Few(all, evidence.MostShown, ", ")
		}
	}
	return text
}

// decideByReplays combines the Verifier's verdict with the replays. A complete entry stays a fail.
// The replays decide about a pass. Gaps of the Verifier's call remain, and gaps of the replays are
// added.
func decideByReplays(f Finding, found evidence.Finding) Finding {
	f.Evidence = found
	f.Notes = append(f.Notes, found.Notes...)
	switch {
	case f.Verdict == Fail:
		f.Entries = noteUnconfirmed(f.Entries, found)
		if len(found.Ended) > 0 {
			f.Entries = append(f.Entries, evidence.Ended("the requests of the saved tests", found.Ended))
		}
	case len(found.Ended) > 0:
		f.Verdict, f.Missing, f.Entries, f.ByReplay = Fail, nil, found.Entries(), true
	case f.Verdict == Unknown:
		f.Missing = append(f.Missing, found.Reasons...)
	case found.Verdict == evidence.Unverified:
		f.Verdict, f.Missing = Unknown, found.Reasons
	case found.Verdict == evidence.Fail:
		f.Verdict, f.Entries, f.ByReplay = Fail, found.Entries(), true
	}
	return f
}

// noteUnconfirmed marks the entries that no replay confirmed, for the user and the Builder. They
// still count.
func noteUnconfirmed(entries []failedspecs.Entry, found evidence.Finding) []failedspecs.Entry {
	entries = slices.Clone(entries)
	for _, s := range found.Contracts {
		for i, e := range entries {
			if s.Is == evidence.NotReproduced && e.Contract == s.Contract {
				entries[i].Note = s.Is + ": " + s.Why
			}
		}
	}
	return entries
}

// claims returns the contracts that the entries name, "" for an entry without one.
func claims(entries []failedspecs.Entry) (all evidence.Claims) {
	for _, e := range entries {
		all = append(all, e.Contract)
	}
	return all
}
