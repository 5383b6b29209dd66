package witness

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
	MaxFields = 20       // of one block
	MaxValue  = 4 << 10  // bytes of one field, the mark of the cut included

	maxIDs      = 50 // on one line
	maxText     = 1000
	maxProblems = 50
)

// Document is one run.sh's output.
type Document struct {
	Version  int // 0: it does not say
	Plan     int // -1: it does not say
	Points   []Point
	Problems []Problem

	byID    map[string][]int // indexes of Points
	mention map[string]int   // ids on lines that are no test lines, with the first such line
}

// Point is one test line with its diagnostics.
type Point struct {
	Line      int // in the output, counted from 1
	Number    int // 0: it has none
	OK        bool
	IDs       []string // of the contracts that it names at its head, mostly one
	Text      string   // what follows
	Directive string   // SKIP, TODO or ""
	Reason    string   // of the directive
	Long      bool     // the line was longer than MaxLine, so its end was not seen
	Fields    []Field  // of the block below it, in order
}

// Field is one key of a block with its value, quotation marks taken off. Comments
// below a test line are a field "comment", lines without a key a field "text".
type Field struct{ Key, Value string }

// Problem is what is wrong with an output.
type Problem struct {
	Line  int    `json:"line"` // counted from 1, 0 for the output as a whole
	Text  string `json:"text"`
	Doubt bool   `json:"doubt,omitempty"` // no ok of this output is to be believed
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

// Get is the value of a field of the block, "" when there is none.
func (p Point) Get(key string) string {
	for _, f := range p.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// Doubts are the problems for which no ok of the output is to be believed.
func (d Document) Doubts() (doubts []Problem) {
	for _, p := range d.Problems {
		if p.Doubt {
			doubts = append(doubts, p)
		}
	}
	return doubts
}
