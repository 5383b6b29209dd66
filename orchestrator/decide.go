package orchestrator

import (
	"slices"

	"abl/internal/failedspecs"
	"abl/orchestrator/evidence"
)

// decideByReplays puts what the Verifier said beside what replays have shown. A
// well-formed entry stays a fail; a pass is decided by the replays; what lacked
// before lacks still, and what the replays lack is told with it.
func decideByReplays(f Finding, found evidence.Finding) Finding {
	f.Evidence = &found
	f.Notes = append(f.Notes, found.Notes...)
	switch {
	case f.Verdict == Fail:
		f.Entries = doubted(f.Entries, found)
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

// doubted marks the entries that no replay has confirmed, for the person and the
// Builder. They count all the same.
func doubted(entries []failedspecs.Entry, found evidence.Finding) []failedspecs.Entry {
	entries = slices.Clone(entries)
	for _, s := range found.Contracts {
		for i, e := range entries {
			if s.Is == evidence.NotReproduced && e.Contract == s.Contract {
				entries[i].Note = string(s.Is) + ": " + s.Why
			}
		}
	}
	return entries
}

// claims are the contracts that the entries name, "" for one that names none.
func claims(entries []failedspecs.Entry) (all evidence.Claims) {
	for _, e := range entries {
		all = append(all, e.Contract)
	}
	return all
}
