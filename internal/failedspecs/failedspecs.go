// Package failedspecs parses and writes failed_specs.md, the only message from the Verifier to the
// Builder.
//
// An agent writes the file, so it is hostile: the package limits and cleans everything, and treats
// anything unclear as no pass. docs/failed-specs.md has the grammar. Package orchestrator draws the
// conclusions.
package failedspecs

import (
	"fmt"
	"strings"

	"abl/internal/wording"
)

// FileName is the name of the file in the top directory of the Verifier's workspace.
const FileName = "failed_specs.md"

// Limits of a file. Text beyond them is cut, and a Problem says so.
const (
	MaxBytes   = 256 << 10 // of one file
	MaxEntries = 100       // of one file
	MaxField   = 4 << 10   // bytes of one SPEC, INPUT or OBSERVED, with the mark of a cut
)

// Kind is the meaning of a whole file.
type Kind string

// The kinds of files. Only an empty file can lead to a pass.
const (
	Pass      Kind = "pass"      // empty or only white space: a candidate for a pass
	Fail      Kind = "fail"      // at least one complete entry
	Malformed Kind = "malformed" // anything else: never a pass
)

// Entry is one failed contract. Its texts are in normal form (see Sanitize).
type Entry struct {
	Spec     string `json:"spec"`
	Input    string `json:"input"`
	Observed string `json:"observed"`
	Line     int    `json:"line,omitempty"` // of its SPEC, from 1; 0 if it is not from a file

	// Contract is the id of the contract that SPEC names, "" without a match or before
	// Contracts.Name.
	Contract string `json:"contract,omitempty"`
	// Note is abl's remark about the entry for the user and the Builder, for example that a
	// replay did not reproduce it. It is not a part of the file.
	Note string `json:"note,omitempty"`
}

// Problem is a remark about a file for the user, or for the Verifier in its next call.
type Problem struct {
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// Result is the result of parsing a file.
type Result struct {
	Kind    Kind    `json:"verdict"`
	Entries []Entry `json:"entries"` // the complete ones

	// Incomplete lists entries with missing fields, which are "". The user sees them, but the
	// Builder does not.
	Incomplete []Entry   `json:"incomplete,omitempty"`
	Problems   []Problem `json:"problems,omitempty"`
	// Fenced are the first lines of code blocks in entries. Parse treats data in such a block
	// as text.
	Fenced []int `json:"-"`
}

// Parse parses a failed_specs.md. It never fails: a file that it cannot understand is Malformed. It
// reads at most MaxBytes. Pass one byte more to detect a longer file.
func Parse(data []byte) Result {
	cut := len(data) > MaxBytes
	text := clean(string(data[:min(len(data), MaxBytes)]))
	if strings.TrimSpace(text) == "" && !cut {
		return Result{Kind: Pass}
	}
	p := &parser{lines: strings.Split(text, "\n")}
	p.run()
	if cut {
		p.problem(len(p.lines), fmt.Sprintf("the file is larger than %d bytes, the rest is ignored", MaxBytes))
	}
	return p.result()
}

// Notes returns one sentence for each problem and each incomplete entry, for the user.
func (r Result) Notes(file string) (all []string) {
	for _, p := range r.Problems {
		place := file
		if p.Line > 0 {
			place += fmt.Sprintf(" line %d", p.Line)
		}
		all = append(all, place+": "+p.Text)
	}
	for _, e := range r.Incomplete {
		var parts []string
		for f, text := range []string{e.Spec, e.Input, e.Observed} {
			if !blank.MatchString(text) {
				parts = append(parts, field(f).String()+": "+wording.Cut(wording.OneLine(text), 200))
			}
		}
		if len(parts) > 0 {
			all = append(all, fmt.Sprintf("%s line %d is incomplete and ignored: %s", file, e.Line, strings.Join(parts, " ")))
		}
	}
	return all
}
