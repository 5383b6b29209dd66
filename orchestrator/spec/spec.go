// Package spec reads the specs of a project's phases: the person's text as it
// stands, and the contracts in it. A contract is ACTION → EXPECTED RESULT, in
// any of the forms in which people write it down: lists, tables, code blocks,
// labelled lines, plain lines, over several lines. Each has an id that stays its
// own when the text around it changes.
package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
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
	Under   string // what the text above it adds to the action: the item of the outer list, "POST /login", "With a token"; mostly ""
	Place   string // all headings and titles above it, by which two contracts of the same words differ
	Text    string // as it stands in the spec from Line on; a table's row whole
	Line    int    // counted from 1
	Absence bool   // marked "(absence)": its result is that something is refused or gone
	Written bool   // the person wrote the id
}

// Says is the contract on one line, complete without the lines above it.
func (c Contract) Says() string {
	s := c.Action + " → " + c.Result
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
	r := &reader{name: name, phase: number}
	if !r.readable(data) {
		return Spec{Number: number, File: name}, r.problems
	}
	text := normalise(data)
	lines := strings.Split(text, "\n")
	s := Spec{Number: number, File: name, Text: text, SHA256: sum(text), Title: r.title(lines[0])}
	marks := mark(lines)
	s.HasContext, s.HasContracts = marks.hasContext, marks.hasContracts
	if marks.comment > 0 {
		r.warn(marks.comment, "open-comment", "this comment is not closed, so all after it is left out", "close it with -->")
	}
	if marks.fence > 0 {
		r.warn(marks.fence, "open-block", "this code block is not closed, so all after it belongs to it", "close it with the same marks on a line of their own")
	}
	s.Contracts = r.contracts(lines, marks)
	r.overlooked(marks)
	if len(s.Contracts) == 0 {
		r.fatal(0, "no-contract", "there is no contract", "write each one as: ACTION → EXPECTED RESULT")
	}
	return s, r.problems
}

// normalise takes off what editors add and nobody sees.
func normalise(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// invalid returns the line of the first byte that no text has, 0 for none.
func invalid(data []byte) int {
	if utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		return 0
	}
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return 1 + bytes.Count(data[:at], []byte("\n"))
}
