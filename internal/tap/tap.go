// Package tap reads what the saved tests print. It is TAP 13 or 14 with one line for each
// contract, written by an agent, and may quote what the system under test answered; so a
// line counts as ok only when nothing about it is in doubt, and what casts doubt on the
// whole output is said.
package tap

import (
	"fmt"
	"slices"
)

// The grammar of what run.sh prints, strict where it decides:
//
//	output     = [ BOM ] { line LF }            CR before LF is no part of a line, any other is a character
//	line       = version | plan | test | bail | comment | pragma | blank | indented | noise
//	version    = "TAP version" SP number
//	plan       = "1.." number [ SP "#" any ]    exactly once
//	test       = ( "ok" | "not ok" ) [ SP number ] [ SP "-" ] [ SP ids ] [ SP text ] [ SP directive ]
//	ids        = id { separator id }            one is right; several on one line are no evidence for any of them
//	id         = "P" number ".C" number         first thing of the description, also in ( ) or [ ]
//	directive  = "#" ( "SKIP" | "TODO" ) any    in any case; "\#" is no such mark; the line is no evidence
//	bail       = "Bail out!" any
//	indented   = SP any                         not read, but for the block right after a test line:
//	block      = SP+ "---" LF { SP+ any LF } SP+ "..."      all of it as deep as its first line
//
// A test line without an id, indented ones (a subtest's, a tool's) and noise say
// nothing of any contract. Test lines may come in any order; no number may come
// twice, or be beyond the plan.

// Limits of what is read. What is beyond them is in doubt.
const (
	MaxBytes  = 4 << 20  // of one output
	MaxLine   = 32 << 10 // bytes of one line
	MaxPoints = 20000    // test lines
	MaxValue  = 4 << 10  // bytes of one field, the mark of the cut included

	maxIDs      = 50 // on one line
	maxText     = 1000
	maxProblems = 50
)

// Document is one run.sh's output.
type Document struct {
	Plan     int // -1: it does not say
	Points   []Point
	Problems []Problem

	byID map[string][]Point
}

// Point is one test line with its diagnostics.
type Point struct {
	Line      int    // in the output, counted from 1
	Text      string // of the line, as a person can read it
	Printed   string // the line as it was printed, without blanks behind it
	Number    int    // 0: it has none
	OK        bool
	IDs       []string          // of the contracts that it names at its head, mostly one
	Directive string            // SKIP, TODO or ""
	Long      bool              // the line was longer than MaxLine, so its end was not seen
	Fields    map[string]string // of the block below it, quotation marks taken off; comments below it are "comment"
}

// Problem is what is wrong with an output.
type Problem struct {
	Line  int // counted from 1, 0 for the output as a whole
	Text  string
	Doubt bool // no ok of this output is to be believed
}

// Doubts are the problems for which no ok of the output is to be believed.
func (d Document) Doubts() []Problem {
	return slices.DeleteFunc(slices.Clone(d.Problems), func(p Problem) bool { return !p.Doubt })
}

// Void says why a test line is no evidence, "" when it is.
func (p Point) Void() string {
	switch {
	case p.Directive != "":
		return "is marked " + p.Directive
	case len(p.IDs) > 1:
		return "names several contracts"
	case p.Long:
		return "is longer than abl reads"
	}
	return ""
}

// Status is what an output says of one contract.
type Status string

// All but OK are no ok. Missing, Twice and Void are no statement at all.
const (
	OK      Status = "ok"
	NotOK   Status = "not ok"
	Missing Status = "missing" // no test line names it
	Twice   Status = "twice"   // several do
	Void    Status = "void"    // the one that does is no evidence
)

// Result is what an output says of one contract, taken by itself: whether the
// output as a whole can be believed its Doubts say.
type Result struct {
	Status Status
	Why    string // of a status that is no statement, in words that the Verifier is told
	Points []Point
}

// Of looks a contract up.
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

// Passes says that some line claims ok for the contract, however doubtful: what
// a run must not do in which nothing can be ok. SKIP and TODO claim nothing.
func (d Document) Passes(id string) bool {
	return slices.ContainsFunc(d.byID[id], func(p Point) bool { return p.OK && p.Directive == "" })
}

// Strange lists the test lines that name no contract of those known.
func (d Document) Strange(known func(id string) bool) (strange []Point) {
	for _, p := range d.Points {
		if !slices.ContainsFunc(p.IDs, known) {
			strange = append(strange, p)
		}
	}
	return strange
}
