package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxProblems bounds what a hostile file can make abl say.
const maxProblems = 50

func (p *parser) problem(line int, text string) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{Line: line, Text: text})
	}
}

// finish ends the entry in the making, if there is one.
func (p *parser) finish() {
	d := p.open
	p.open = nil
	if d == nil {
		return
	}
	if d.before != nil && len(d.missing()) > 0 {
		d.before.merge(d)
		d = d.before
	} else if d.before != nil {
		p.keep(d.before)
	}
	p.keep(d)
}

// keep makes an entry of a draft.
func (p *parser) keep(d *draft) {
	missing := d.missing()
	switch {
	case len(missing) == len(fieldNames) && d.bare:
		// "# Spec" was the title of the file.
	case len(missing) > 0:
		p.leave(d, missing)
	case len(p.entries) == MaxEntries:
		p.surplus++
	default:
		p.entries = append(p.entries, d.entry())
	}
}

// leave keeps an entry that lacks something for the person to see.
func (p *parser) leave(d *draft, missing []string) {
	p.problem(d.line, "the entry has no "+strings.Join(missing, " and no "))
	if d.meant != "" {
		p.problem(d.nearLine, fmt.Sprintf("%q is no label, which are SPEC, INPUT and OBSERVED; did you mean %s?", d.near, d.meant))
	}
	if len(p.incomplete) < MaxEntries {
		p.incomplete = append(p.incomplete, d.entry())
	}
}

// foreign names the format that a file seems to be in, "" for none.
func (p *parser) foreign() string {
	text := strings.TrimSpace(strings.Join(p.lines[:min(len(p.lines), 20)], "\n"))
	switch {
	case strings.HasPrefix(text, "\ufffd") && strings.Count(text, "\ufffd") > len([]rune(text))/3:
		return "another encoding"
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return "JSON"
	case tapLine.MatchString(text):
		return "TAP"
	}
	return ""
}

var tapLine = regexp.MustCompile(`(?m)^(?:TAP version \d+|\d+\.\.\d+|(?:not )?ok\b.*)$`)

func (p *parser) result() Result {
	r := Result{Kind: Fail, Entries: p.entries, Incomplete: p.incomplete, Fenced: p.fenced}
	if len(p.entries) == 0 {
		r.Kind = Malformed
	}
	if p.surplus > 0 {
		p.problem(p.entries[MaxEntries-1].Line,
			fmt.Sprintf("%d entries after the first %d were left out", p.surplus, MaxEntries))
	}
	if p.stray > 0 {
		p.problem(p.stray, "text outside the entries is not read")
	}
	if format := p.foreign(); r.Kind == Malformed && format != "" {
		p.problem(1, "this looks like "+format+": write lines that begin with SPEC:, INPUT: and OBSERVED:, in UTF-8")
	}
	if r.Kind == Malformed && len(p.problems) == 0 {
		p.problem(1, "there is no entry: an entry has SPEC:, INPUT: and OBSERVED:")
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
	r.Problems = p.problems
	return r
}

// Notes is what a person should know about the file besides its entries, one
// sentence each: what is wrong with it, and the entries that reach nobody.
func (r Result) Notes(file string) (all []string) {
	for _, p := range r.Problems {
		if p.Line == 0 {
			all = append(all, file+": "+p.Text)
			continue
		}
		all = append(all, fmt.Sprintf("%s line %d: %s", file, p.Line, p.Text))
	}
	for _, e := range r.Incomplete {
		var parts []string
		for f, text := range []string{e.Spec, e.Input, e.Observed} {
			if !void(text) {
				parts = append(parts, field(f).String()+": "+brief(text))
			}
		}
		if len(parts) > 0 {
			all = append(all, fmt.Sprintf("%s line %d is incomplete and reaches nobody: %s", file, e.Line, strings.Join(parts, " ")))
		}
	}
	return all
}

// brief is the beginning of a text on one line.
func brief(text string) string {
	const long = 200
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > long {
		return string(words[:long]) + " …"
	}
	return string(words)
}
