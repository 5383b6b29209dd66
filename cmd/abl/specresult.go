package main

import (
	"cmp"

	"abl/cmd/internal/phase"
	"abl/internal/audit"
	"abl/internal/spec"
)

// matrixResult is what is known of a contract in a phase. The zero value is nothing,
// never a guess: nobody looked, or the contract changed since.
type matrixResult struct {
	Phase  int    `json:"phase"`
	Result string `json:"result"`         // pass, fail or unknown
	By     string `json:"by,omitempty"`   // replay or verifier
	Is     string `json:"is,omitempty"`   // what replays came to (docs/audit-record.md)
	Step   int    `json:"step,omitempty"` // of the iteration that tells
}

// results are the last results of contracts, by phase and id.
type results struct {
	known  map[int]map[string]matrixResult
	others map[int][]string // failed specs that name no contract
}

func (r results) of(phase int, id string) matrixResult {
	was := r.known[phase][id]
	was.Phase, was.Result = phase, cmp.Or(was.Result, audit.Unknown)
	return was
}

// lastResults takes them from the newest audit record of each phase: what abl's
// own replays have shown and, where none was made, what the Verifier said.
func lastResults(last map[int]audit.Record, set spec.Set) results {
	r := results{known: map[int]map[string]matrixResult{}, others: map[int][]string{}}
	for n, record := range last {
		r.known[n] = map[string]matrixResult{}
		same := unchanged(record, set, n)
		for _, c := range record.Contracts {
			if now, ok := same[c.ID]; !ok || now.Says() != c.Says {
				continue
			}
			r.known[n][c.ID] = matrixResult{Result: c.Result, By: c.By, Is: c.Is, Step: record.Step}
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
