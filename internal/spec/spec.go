// Package spec reads the specs of a project's phases and their contracts.
//
// A contract is a line ACTION → EXPECTED RESULT and the lines indented below it. Other lines among
// the contracts are reported as problems. Each contract has an id that stays the same when the text
// around it changes.
package spec

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/wording"
)

// MaxBytes is the maximum size of a spec.
const MaxBytes = 1 << 20

// MaxContracts is the maximum number of contracts in one spec.
const MaxContracts = 1000

// Spec is the spec of one phase.
type Spec struct {
	Number       int
	File         string // path or name for problems
	Title        string
	Text         string // as written, without a byte order mark, with \n as line ends
	SHA256       string // hash of Text in hex, independent of line ends
	Contracts    []Contract
	HasContext   bool // it has a Context section
	HasContracts bool // it has a Contracts section
}

// Contract is an action with its expected result.
type Contract struct {
	ID      string // P1.C3, unique in the project
	Action  string // on one line, without list marker, emphasis and id
	Result  string // on one line, without emphasis
	Under   string // headings and outer list items above, which belong to the action: "POST /login"
	Step    int    // number of the step, 0 if it is not a step
	Line    int    // from 1
	Absence bool   // marked "(absence)": the result is that something is refused or missing
	Written bool   // the user wrote the id

	marked [2]string // action and result with the marks that enclose them as a whole
}

// Marked returns the action and the result with the code marks or quotation marks that enclose them
// as a whole in the spec: `notes rm ID`, "pong".
func (c Contract) Marked() (action, result string) {
	return cmp.Or(c.marked[0], c.Action), cmp.Or(c.marked[1], c.Result)
}

// Says returns the contract on one line, with the lines above that belong to it.
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

// Problem is a problem of one spec or of a set of specs.
type Problem struct {
	File     string
	Line     int    // from 1, 0 for the whole file
	Phase    int    // affected phase, 0 for all
	Contract string // id of the affected contract, often ""
	Code     string // short and stable, see docs/specs.md
	Text     string
	Hint     string // what to do, "" if Text says it
	Fatal    bool   // the spec is unusable: this phase and all later ones cannot start
	Error    bool   // this phase cannot start, later ones can
}

// String returns the problem as "file:line: text", without the hint.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return p.File + ": " + p.Text
}

// Stops reports whether the problem prevents its phase from starting.
func (p Problem) Stops() bool { return p.Fatal || p.Error }

// Parse parses the spec of phase number. The spec is unusable if one of the returned problems is
// Fatal. name is the file name in problems. Parse sets ids from the text alone. Use LoadDir for
// stable ones.
func Parse(name string, data []byte, number int) (Spec, []Problem) {
	s := Spec{Number: number, File: name}
	r := &reader{Spec: s, most: maxProblems, counted: map[bool]int{}}
	if !r.readable(data) {
		return s, r.problems
	}
	r.read(data)
	return r.Spec, r.problems
}

// read reads all contracts of a text.
func (r *reader) read(data []byte) {
	text := wording.Unix(string(data))
	lines := strings.Split(text, "\n")
	first := skipFrontMatter(lines)
	r.Text, r.SHA256, r.Title = text, sum(text), r.title(lines, first)
	root := r.parseTree(lines, first)
	r.label(root, nil)
	r.chapter(root)
	switch n := len(r.Contracts); {
	case n == 0:
		r.fatal(0, "no-contract", "there is no contract", "write each one as a list item with an arrow, such as: "+example)
	case n > MaxContracts:
		r.fatal(r.Contracts[MaxContracts].Line, "too-many", fmt.Sprintf("the spec has more than %d contracts",
			MaxContracts), "split it into phases")
		r.Contracts = r.Contracts[:MaxContracts]
	}
	assign(r.Number, r.Contracts, nil)
	r.writeProposals()
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// Begins reports whether the spec begins with an earlier version of it. sha and size are SHA256 and
// len(Text) of the earlier version.
func (s Spec) Begins(sha string, size int) bool {
	return size >= 0 && size <= len(s.Text) && sum(s.Text[:size]) == sha
}

// Extends reports whether the spec is an earlier version of it, possibly with appended text.
// Appended text begins on a new line and changes no contract. An indented line, for example, would
// change the last one.
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
	return slices.EqualFunc(old.Contracts, now, func(a, b Contract) bool {
		return a.Line == b.Line && a.Says() == b.Says()
	})
}

// reader parses the text of a spec and collects its problems.
type reader struct {
	Spec
	problems []Problem
	most     int          // maximum number of warnings, and of errors
	counted  map[bool]int // number of warnings (false) and errors (true)
	offers   []offer
	inside   *node // the heading of the last Contracts section
	end      int   // line of the heading that ended it, 0 in or before it
	reported *node // the last heading after it whose lines were reported
	nested   bool  // it reads a proposal, so it makes no proposals
}

// maxProblems limits the problems of a file that is not a spec at all.
const maxProblems = 50

func (r *reader) report(p Problem) {
	p.File, p.Phase = r.File, r.Number
	if r.counted[p.Error]++; p.Fatal || r.counted[p.Error] <= r.most {
		r.problems = append(r.problems, p)
	}
}

func (r *reader) fatal(line int, code, text, hint string) {
	r.report(Problem{
		Line:  line,
		Code:  code,
		Text:  text,
		Hint:  hint,
		Fatal: true,
	})
}

func (r *reader) warn(line int, code, text, hint string) {
	r.report(Problem{
		Line: line,
		Code: code,
		Text: text,
		Hint: hint,
	})
}

// wrong reports an error: the phase cannot start.
func (r *reader) wrong(line int, code, text, hint string) {
	r.report(Problem{
		Line:  line,
		Code:  code,
		Text:  text,
		Hint:  hint,
		Error: true,
	})
}

// readable reports whether data can be a spec. If not, it adds a fatal problem.
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

var titleLine = regexp.MustCompile(`^#[ \t]+Phase[ \t]+(\d+)[ \t]*:[ \t]*(\S.*?)[ \t]*$`)

// skipFrontMatter clears the lines of YAML front matter, which documentation tools put at the top
// of a page. It returns the index of the first line after it and after blank lines, 0 without front
// matter.
func skipFrontMatter(lines []string) (first int) {
	const fence = "---"
	if strings.TrimRight(lines[0], " \t") != fence {
		return 0
	}
	end := slices.IndexFunc(lines[1:], func(l string) bool {
		l = strings.TrimRight(l, " \t")
		return l == fence ||
			l == "..."
	})
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

// title parses the first line, "# Phase N: Title".
func (r *reader) title(lines []string, at int) string {
	m := titleLine.FindStringSubmatch(lines[at])
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

// quote returns the beginning of a text in quotes.
func quote(s string) string { return strconv.Quote(wording.Cut(s, 60)) }
