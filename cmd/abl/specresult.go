package main

import (
	"abl/cmd/internal/phase"
	"abl/internal/audit"
	"abl/internal/spec"
)

// known is what is known of a contract in a phase. The zero value is nothing,
// never a guess: nobody looked, or the contract changed since.
type known struct {
	result string // pass or fail; "" is unknown
	by     string // replay or verifier
	is     string // what replays came to; "" when none was made
	step   int    // of the iteration that tells
}

// results are the last results of contracts, by phase and id.
type results struct {
	known  map[int]map[string]known
	others map[int][]string // failed specs that name no contract
}

func (r results) of(phase int, id string) known { return r.known[phase][id] }

// lastResults takes them from the newest audit record of each phase: what abl's
// own replays have shown and, where none was made, what the Verifier said.
func lastResults(last map[int]audit.Record, set spec.Set) results {
	r := results{known: map[int]map[string]known{}, others: map[int][]string{}}
	for n, record := range last {
		r.known[n] = map[string]known{}
		same := unchanged(record, set, n)
		for _, c := range record.Contracts {
			if now, ok := same[c.ID]; !ok || now.Says() != c.Says {
				continue
			}
			k := known{by: c.By, is: c.Is, step: record.Step}
			if c.Result != audit.Unknown {
				k.result = c.Result
			}
			r.known[n][c.ID] = k
		}
		for _, e := range record.Entries {
			if _, ok := same[e.Contract]; !ok {
				r.others[n] = append(r.others[n], e.Spec)
			}
		}
	}
	return r
}

// unchanged are the contracts of phases 1 to n whose spec is what it was when
// the record was made, or that with something appended.
func unchanged(r audit.Record, set spec.Set, n int) map[string]spec.Contract {
	all := map[string]spec.Contract{}
	for _, s := range set.UpTo(n) {
		for _, was := range r.Specs {
			if was.Phase != s.Number || !s.Extends(was.SHA256, was.Bytes) {
				continue
			}
			for _, c := range s.Contracts {
				all[c.ID] = c
			}
		}
	}
	return all
}

// lastRecords are the newest audit record of each phase. One that cannot be read
// is told, and nothing is known from it.
func lastRecords(s *phase.Project, set spec.Set) map[int]audit.Record {
	last := map[int]audit.Record{}
	for _, n := range set.Numbers() {
		r, ok, err := audit.Last(s.Paths, n)
		if err != nil {
			s.In.Warn(err)
		} else if ok {
			last[n] = r
		}
	}
	return last
}
