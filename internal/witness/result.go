package witness

import (
	"fmt"
	"slices"
)

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
	r := Result{Status: Missing}
	for _, i := range d.byID[id] {
		r.Points = append(r.Points, d.Points[i])
	}
	switch {
	case len(r.Points) > 1:
		r.Status, r.Why = Twice, fmt.Sprintf("lines %d and %d both name it", r.Points[0].Line, r.Points[1].Line)
	case len(r.Points) == 1 && r.Points[0].Void() != "":
		r.Status, r.Why = Void, fmt.Sprintf("line %d %s", r.Points[0].Line, r.Points[0].Void())
	case len(r.Points) == 1 && r.Points[0].OK:
		r.Status = OK
	case len(r.Points) == 1:
		r.Status = NotOK
	case d.mention[id] > 0:
		r.Why = fmt.Sprintf("no test line names it; line %d does and is indented or no test line", d.mention[id])
	default:
		r.Why = "no test line names it"
	}
	return r
}

// Passes says that some line claims ok for the contract, however doubtful: what
// a run must not do in which nothing can be ok. SKIP and TODO claim nothing.
func (d Document) Passes(id string) bool {
	return slices.ContainsFunc(d.byID[id], func(i int) bool { return d.Points[i].OK && d.Points[i].Directive == "" })
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
