// Package spec reads the specs of a project's phases: the person's text as it
// stands, and the contracts in it. A contract is ACTION → EXPECTED RESULT, in
// any of the forms in which people write it down: lists, tables, code blocks,
// plain lines, over several lines.
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

// Spec is one phase's spec.
type Spec struct {
	Number     int
	Title      string
	Text       string // as written, without a byte order mark, lines ended by \n
	SHA256     string // of Text in hex, so that a change of line ends is no change of the spec
	Contracts  []Contract
	HasContext bool // it has a Context section
}

// Contract is one action with its expected result.
type Contract struct {
	ID      string // P1.C3: phase and place in the spec, from 1
	Action  string // on one line, without list marks and emphasis
	Result  string // likewise
	Text    string // as it stands in the spec from Line on; a table's row whole
	Line    int    // counted from 1
	Absence bool   // marked "(absence)": its result is that something is refused or gone
}

// Problem is what is wrong with a spec or with a set of them.
type Problem struct {
	File  string
	Line  int // counted from 1, 0 for the file as a whole
	Phase int // this phase and those after it cannot start when Fatal; 0 is all of them
	Text  string
	Hint  string // what to do, "" when Text says it
	Fatal bool
}

// String is the problem as "file:line: text", without the hint.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return p.File + ": " + p.Text
}

// Parse reads the spec of phase number. With a Fatal problem among those it
// returns, the spec is not to be used. name is used in problems alone.
func Parse(name string, data []byte, number int) (Spec, []Problem) {
	r := &reader{name: name, number: number}
	if !r.readable(data) {
		return Spec{Number: number}, r.problems
	}
	text := normalise(data)
	lines := strings.Split(text, "\n")
	s := Spec{Number: number, Text: text, SHA256: sum(text), Title: r.title(lines[0])}
	marks := mark(lines)
	s.HasContext = marks.hasContext
	if marks.comment > 0 {
		r.warn(marks.comment, "this comment is not closed, so all after it is left out", "close it with -->")
	}
	s.Contracts = r.contracts(lines, marks)
	if len(s.Contracts) == 0 {
		r.fatal(0, "there is no contract", "write each one as: ACTION → EXPECTED RESULT")
	}
	return s, r.problems
}

// Extends reports whether the spec is an earlier one, or that one with something
// appended. sha and size are SHA256 and len(Text) of the earlier one.
func (s Spec) Extends(sha string, size int) bool {
	return size >= 0 && size <= len(s.Text) && sum(s.Text[:size]) == sha
}

// normalise takes off what editors add and nobody sees.
func normalise(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return strings.ReplaceAll(string(data), "\r\n", "\n")
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
