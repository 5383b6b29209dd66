// Package failedspecs reads and writes failed_specs.md, the only thing that the
// Verifier can say to the Builder. The file is an agent's work and therefore
// hostile: everything is capped, cleaned and judged fail-closed. The grammar
// is in docs/failed-specs.md. It opens no file, and what a verdict makes of one is the
// orchestrator's.
package failedspecs

import (
	"fmt"
	"strings"

	"abl/internal/wording"
)

// FileName is the name of the file, at the top of the Verifier's workspace.
const FileName = "failed_specs.md"

// Limits of what is read. Beyond them text is cut, and a Problem says so.
const (
	MaxBytes   = 256 << 10 // of one file
	MaxEntries = 100       // of one file
	MaxField   = 4 << 10   // bytes of one SPEC, INPUT or OBSERVED, the mark of the cut included
)

// Kind is what a file says as a whole.
type Kind string

// The three kinds. Only an empty file can lead to a pass.
const (
	Pass      Kind = "pass"      // empty, or nothing but white space: a candidate only
	Fail      Kind = "fail"      // at least one complete entry
	Malformed Kind = "malformed" // anything else: never a pass
)

// Entry is one failed contract, in the language of the spec. Its texts are in
// normal form: see Sanitize.
type Entry struct {
	Spec     string `json:"spec"`
	Input    string `json:"input"`
	Observed string `json:"observed"`
	Line     int    `json:"line,omitempty"` // of its SPEC, counted from 1; 0 when it comes from no file

	// Contract is the id of the contract that the SPEC names, "" when it names
	// none or nobody has looked it up: see Contracts.Name.
	Contract string `json:"contract,omitempty"`
	// Note is what abl has to say about the entry to the person and the Builder,
	// such as that the replay did not reproduce it. It is not part of the file.
	Note string `json:"note,omitempty"`
}

// Problem is something that a person, or the Verifier when it is asked again,
// should know about a file.
type Problem struct {
	Line int    `json:"line"` // counted from 1
	Text string `json:"text"`
}

// Result is what abl makes of a file.
type Result struct {
	Kind    Kind    `json:"verdict"`
	Entries []Entry `json:"entries"` // the complete ones

	// Incomplete entries lack a field, which is "" here. They are shown to the
	// person and reach no Builder.
	Incomplete []Entry   `json:"incomplete,omitempty"`
	Problems   []Problem `json:"problems,omitempty"`
	// Fenced are the lines with which code blocks inside entries begin. What is
	// data in them is read as text.
	Fenced []int `json:"-"`
}

// Parse judges the content of a failed_specs.md. It never fails: what it cannot
// understand is Malformed. Give it MaxBytes+1 bytes at most; more are not read.
func Parse(data []byte) Result {
	cut := len(data) > MaxBytes
	text := clean(strings.TrimPrefix(string(data[:min(len(data), MaxBytes)]), "\ufeff"))
	if strings.TrimSpace(text) == "" && !cut {
		return Result{Kind: Pass}
	}
	p := &parser{lines: strings.Split(text, "\n")}
	p.run()
	if cut {
		p.problem(len(p.lines), fmt.Sprintf("the file is longer than %d bytes, the rest was not read", MaxBytes))
	}
	return p.result()
}

// Notes is what a person should know about the file besides its entries, one
// sentence each: what is wrong with it, and the entries that reach nobody.
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
			if !blank().MatchString(text) {
				parts = append(parts, field(f).String()+": "+wording.Cut(wording.OneLine(text), 200))
			}
		}
		if len(parts) > 0 {
			all = append(all, fmt.Sprintf("%s line %d is incomplete and reaches nobody: %s", file, e.Line, strings.Join(parts, " ")))
		}
	}
	return all
}
