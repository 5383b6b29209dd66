// Package spec reads the specs of a project's phases: the person's text as it
// stands, and the contracts in it. A contract is a line ACTION → EXPECTED RESULT
// with what is indented below it; whatever else stands among the contracts is told
// as a problem. Each has an id that stays its own when the text around it changes.
// Nothing of a phase's run belongs here.
package spec

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
	"abl/internal/wording"
)

// MaxBytes is the largest spec that is read.
const MaxBytes = 1 << 20

// MaxContracts is the largest number of contracts in one spec.
const MaxContracts = 1000

// Spec is one phase's spec.
type Spec struct {
	Number       int
	File         string // as it was read
	Title        string
	Text         string // as written, without a byte order mark, lines ended by \n
	SHA256       string // of Text in hex, so that a change of line ends is no change of the spec
	Contracts    []Contract
	HasContext   bool // it has a Context section
	HasContracts bool // it has a Contracts section
}

// Contract is one action with its expected result.
type Contract struct {
	ID      string // P1.C3, unique in the project
	Action  string // on one line, without list marks, emphasis and id
	Result  string // likewise
	Under   string // the headings and the items of outer lists above it, which belong to the action: "POST /login"; mostly ""
	Step    int    // its number among steps in order, 0 when it is none
	Line    int    // counted from 1
	Absence bool   // marked "(absence)": its result is that something is refused or gone
	Written bool   // the person wrote the id

	marked [2]string // the action and the result with the marks that were around the whole of them
}

// Marked returns the action and the result with the code marks or the quotation marks
// that the spec has around the whole of them: `notes rm ID`, "pong".
func (c Contract) Marked() (action, result string) {
	return cmp.Or(c.marked[0], c.Action), cmp.Or(c.marked[1], c.Result)
}

// Says is the contract on one line, complete without the lines above it.
func (c Contract) Says() string {
	s := c.Action + " → " + c.Result
	if c.Step > 0 {
		s = fmt.Sprintf("step %d: %s", c.Step, s)
	}
	if c.Under != "" {
		s = c.Under + ": " + s
	}
	if c.Absence {
		s += " (absence)"
	}
	return s
}

// Problem is what is wrong with a spec or with a set of them.
type Problem struct {
	File     string
	Line     int    // counted from 1, 0 for the file as a whole
	Phase    int    // that it concerns, 0 is all of them
	Contract string // id of the contract that it is about, mostly ""
	Code     string // of docs/specs.md: short, and the same for ever
	Text     string
	Hint     string // what to do, "" when Text says it
	Fatal    bool   // the spec cannot be used: this phase and those after it cannot start
	Error    bool   // the phase cannot start, those after it can: their specs are not worse for it
}

// String is the problem as "file:line: text", without the hint.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return p.File + ": " + p.Text
}

// Stops says that the problem keeps its phase from starting.
func (p Problem) Stops() bool { return p.Fatal || p.Error }

// Parse reads the spec of phase number. With a Fatal problem among those it
// returns, the spec is not to be used. name is used in problems alone. The ids
// are those that the text alone tells: see LoadDir for those that last.
func Parse(name string, data []byte, number int) (Spec, []Problem) {
	s := Spec{Number: number, File: name}
	r := &reader{Spec: s, most: maxTold, told: map[bool]int{}}
	if !r.readable(data) {
		return s, r.problems
	}
	r.read(data)
	return r.Spec, r.problems
}

// read takes the contracts of a text.
func (r *reader) read(data []byte) {
	text := wording.Unix(string(data))
	lines := strings.Split(text, "\n")
	first := skipFrontMatter(lines)
	r.Text, r.SHA256, r.Title = text, sum(text), r.title(lines, first)
	root := r.grow(lines, first)
	r.label(root, nil)
	r.chapter(root)
	switch n := len(r.Contracts); {
	case n == 0:
		r.fatal(0, "no-contract", "there is no contract", "write each one as a list item with an arrow, such as: "+example)
	case n > MaxContracts:
		r.fatal(r.Contracts[MaxContracts].Line, "too-many", fmt.Sprintf("the spec has more than %d contracts", MaxContracts), "split it into phases")
		r.Contracts = r.Contracts[:MaxContracts]
	}
	assign(r.Number, r.Contracts, nil)
	r.offerAll()
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// Begins reports whether the first bytes of the spec are an earlier one. sha and
// size are SHA256 and len(Text) of that.
func (s Spec) Begins(sha string, size int) bool {
	return size >= 0 && size <= len(s.Text) && sum(s.Text[:size]) == sha
}

// Extends reports whether the spec is an earlier one, or that one with something
// appended. What is appended begins on a line of its own and leaves every contract what it was: an
// indented line at the end would change the last one.
func (s Spec) Extends(sha string, size int) bool {
	if !s.Begins(sha, size) {
		return false
	}
	rest := s.Text[size:]
	if strings.TrimSpace(rest) == "" {
		return true
	}
	before := s.Text[:size]
	if before != "" && !strings.HasSuffix(before, "\n") && !strings.HasPrefix(rest, "\n") {
		return false
	}
	old, _ := Parse(s.File, []byte(before), s.Number)
	now := s.Contracts[:min(len(old.Contracts), len(s.Contracts))]
	return slices.EqualFunc(old.Contracts, now, func(a, b Contract) bool { return a.Line == b.Line && a.Says() == b.Says() })
}

// reader makes a spec of a text, and collects what there is to say about it.
type reader struct {
	Spec
	problems []Problem
	most     int          // warnings that are kept, and errors
	told     map[bool]int // how many there were of each
	offers   []offer
	inside   *node // the heading of the last Contracts section
	end      int   // line of the heading that ended it, 0 within it and before it
	reported *node // the heading after it whose lines were reported last
	nested   bool  // it reads a proposal, and makes none
}

// maxTold keeps a file that is no spec at all from filling a terminal.
const maxTold = 50

func (r *reader) tell(p Problem) {
	p.File, p.Phase = r.File, r.Number
	if r.told[p.Error]++; p.Fatal || r.told[p.Error] <= r.most {
		r.problems = append(r.problems, p)
	}
}

func (r *reader) fatal(line int, code, text, hint string) {
	r.tell(Problem{Line: line, Code: code, Text: text, Hint: hint, Fatal: true})
}

func (r *reader) warn(line int, code, text, hint string) {
	r.tell(Problem{Line: line, Code: code, Text: text, Hint: hint})
}

// wrong is an error: the phase does not start.
func (r *reader) wrong(line int, code, text, hint string) {
	r.tell(Problem{Line: line, Code: code, Text: text, Hint: hint, Error: true})
}

// readable refuses what cannot be read as a spec at all.
func (r *reader) readable(data []byte) bool {
	sound, _, odd := strings.Cut(strings.ToValidUTF8(string(data), "\x00"), "\x00")
	switch {
	case len(data) > MaxBytes:
		r.fatal(0, "too-large", fmt.Sprintf("the spec is larger than %d bytes", MaxBytes), "split it into phases")
	case strings.TrimSpace(wording.Unix(string(data))) == "":
		r.fatal(0, "empty", "the spec is empty", fmt.Sprintf(`begin it with "# Phase %d: Title"`, r.Number))
	case odd:
		line := 1 + strings.Count(sound, "\n")
		r.fatal(line, "not-text", "the spec is not UTF-8 text", "save it as UTF-8")
	default:
		return true
	}
	return false
}

var titleLine = lazyregexp.New(`^#[ \t]+Phase[ \t]+(\d+)[ \t]*:[ \t]*(\S.*?)[ \t]*$`)

// skipFrontMatter empties the lines of YAML front matter, as documentation tools put it before a page,
// and returns the index of the line after it and blank lines. It is 0 without front matter.
func skipFrontMatter(lines []string) (first int) {
	const fence = "---"
	if strings.TrimRight(lines[0], " \t") != fence {
		return 0
	}
	end := slices.IndexFunc(lines[1:], func(l string) bool { l = strings.TrimRight(l, " \t"); return l == fence || l == "..." })
	if end < 0 {
		return 0
	}
	first = end + 2
	clear(lines[:first])
	for first < len(lines)-1 && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	return min(first, len(lines)-1)
}

// title reads the first line, "# Phase N: Title".
func (r *reader) title(lines []string, at int) string {
	m := titleLine().FindStringSubmatch(lines[at])
	if m == nil {
		r.fatal(at+1, "title", fmt.Sprintf(`the first line is %s, want "# Phase %d: Title"`, quote(lines[at]), r.Number), "")
		return ""
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n != r.Number {
		r.fatal(at+1, "number", fmt.Sprintf("the first line has phase number %s, but the file name has %d", m[1], r.Number),
			"make the two agree")
	}
	return m[2]
}

// quote shows the beginning of a text.
func quote(s string) string { return strconv.Quote(wording.Cut(s, 60)) }
