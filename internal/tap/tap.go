// Package tap parses the output of the saved tests: TAP 13 or 14 with one test line per contract.
//
// An agent writes the tests, and their output may quote the system under test. So a line counts as
// ok only without any doubt, and problems that affect the whole output are reported.
package tap

import (
	"fmt"
	"slices"
)

// The grammar of the output of run.sh:
//
//	output     = [ BOM ] { line LF }            CR before LF is not part of the line
//	line       = version | plan | test | bail | comment | pragma | blank | indented | noise
//	version    = "TAP version" SP number
//	plan       = "1.." number [ SP "#" any ]    exactly once
//	test       = ( "ok" | "not ok" ) [ SP number ] [ SP "-" ] [ SP ids ] [ SP text ] [ SP directive ]
//	ids        = id { separator id }            a line with several ids is not evidence for any of them
//	id         = "P" number ".C" number         at the beginning of the description, also in ( ) or [ ]
//	directive  = "#" ( "SKIP" | "TODO" ) any    in any case, but not "\#"; the line is not evidence
//	bail       = "Bail out!" any
//	indented   = SP any                         ignored, except for the block right after a test line:
//	block      = SP+ "---" LF { SP+ any LF } SP+ "..."      with at least the indentation of its first line
//
// Test lines without an id, indented ones (of subtests or tools) and noise say nothing about
// contracts. Test lines may be in any order. Each number must be unique and not greater than the
// plan.

// Limits of an output. An output that exceeds them is in doubt.
const (
	MaxBytes  = 4 << 20  // of one output
	MaxLine   = 32 << 10 // bytes of one line
	MaxPoints = 20000    // test lines
	MaxValue  = 4 << 10  // bytes of one field, with the mark of a cut

	maxIDs      = 50 // on one line
	maxText     = 1000
	maxProblems = 50
)

// Document is a parsed output.
type Document struct {
	Plan     int // number of tests, -1 if there is no plan
	Points   []Point
	Problems []Problem

	byID map[string][]Point
}

// Point is one test line with its diagnostics.
type Point struct {
	Line      int    // in the output, from 1
	Text      string // of the line, readable
	Printed   string // the line as printed, without trailing blanks
	Number    int    // 0 if missing
	OK        bool
	IDs       []string          // contracts at the beginning of the description, usually one
	Directive string            // SKIP, TODO or ""
	Long      bool              // the line was longer than MaxLine and is cut
	Fields    map[string]string // fields of the block below, without quotation marks; "comment" has the comments below
}

// Problem is a problem of an output.
type Problem struct {
	Line  int // from 1, 0 for the whole output
	Text  string
	Doubt bool // no ok of this output counts
}

// Doubts returns the problems because of which no ok of the output counts.
func (d Document) Doubts() []Problem {
	return slices.DeleteFunc(slices.Clone(d.Problems), func(p Problem) bool { return !p.Doubt })
}

// Void returns why a test line is not evidence, "" if it is.
func (p Point) Void() string {
	switch {
	case p.Directive != "":
		return "is marked " + p.Directive
	case len(p.IDs) > 1:
		return "names several contracts"
	case p.Long:
		return fmt.Sprintf("is longer than %d bytes", MaxLine)
	}
	return ""
}

// Status is the result of an output for one contract.
type Status string

// The statuses. Missing, Twice and Void mean that there is no result.
const (
	OK      Status = "ok"
	NotOK   Status = "not ok"
	Missing Status = "missing" // no test line names it
	Twice   Status = "twice"   // several test lines name it
	Void    Status = "void"    // its test line is not evidence
)

// Result is the result of an output for one contract, regardless of the output's Doubts.
type Result struct {
	Status Status
	Why    string // reason for a missing result, for the Verifier
	Points []Point
}

// Of returns the result for a contract.
func (d Document) Of(id string) Result {
	r := Result{Points: d.byID[id]}
	switch {
	case len(r.Points) == 0:
		r.Status, r.Why = Missing, "no test line names it"
	case len(r.Points) > 1:
		r.Status, r.Why = Twice, fmt.Sprintf("lines %d and %d both name it", r.Points[0].Line, r.Points[1].Line)
	case r.Points[0].Void() != "":
		r.Status, r.Why = Void, fmt.Sprintf("line %d %s", r.Points[0].Line, r.Points[0].Void())
	case r.Points[0].OK:
		r.Status = OK
	default:
		r.Status = NotOK
	}
	return r
}

// Passes reports whether any line, however doubtful, claims ok for the contract. In a run without
// the app none may. SKIP and TODO claim nothing.
func (d Document) Passes(id string) bool {
	return slices.ContainsFunc(d.byID[id], func(p Point) bool { return p.OK && p.Directive == "" })
}

// Strange returns the test lines that name no known contract.
func (d Document) Strange(known func(id string) bool) (strange []Point) {
	for _, p := range d.Points {
		if !slices.ContainsFunc(p.IDs, known) {
			strange = append(strange, p)
		}
	}
	return strange
}
