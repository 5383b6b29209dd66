package spec

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abl/internal/wording"
)

// chapter reads the lines below a heading, or a whole spec.
func (r *reader) chapter(n *node) {
	name := n.text()
	r.trackSectionEnd(n)
	switch {
	case !r.mayHaveContracts(n):
		r.reportOutside(n)
	case freeIn(name):
		r.wrong(n.line+1, "heading", quote(name)+" is a heading, so it is not a contract",
			"write it below the heading, as a list item")
	case len(n.under) > 0 && r.HasContracts && !slices.ContainsFunc(n.kids,
		func(k *node) bool { return k.section == n.section }):
		r.warn(n.line+1, "untested", "there is no contract under the heading "+quote(name)+", so it will not be tested",
			"write its contracts below it, such as: "+example)
	}
	holds := func(k *node) bool { return k.kind != title && k.holds() }
	r.readBelow(n, n.under, n.section == contractsSection || slices.ContainsFunc(n.kids, holds))
}

// mayHaveContracts reports whether a node may have contracts.
func (r *reader) mayHaveContracts(n *node) bool {
	return n.section == contractsSection || n.section == other && !r.HasContracts
}

// reportOutside reports a line with an arrow that is outside the Contracts section.
func (r *reader) reportOutside(n *node) {
	if n.section != other || !n.arrow && !n.data {
		return
	}
	hint := "move it there"
	if r.end > 0 {
		hint += fmt.Sprintf(": the heading in line %d ended the section", r.end)
	}
	r.warn(n.line+1, "outside", quote(n.text())+" is outside the Contracts section, so it is not a contract", hint)
}

// maxNamed is the maximum number of lines that one problem lists.
const maxNamed = 5

// trackSectionEnd tracks where the Contracts section ends. It reports the lines below a heading after that
// end, except those with an arrow, which reportOutside reports.
func (r *reader) trackSectionEnd(n *node) {
	if n.section == contractsSection {
		r.end = 0
		return
	}
	what := "this heading is after the end of the Contracts section"
	switch {
	case r.inside != nil && r.end == 0:
		r.end, what = n.line+1, "this heading ended the Contracts section"
	case r.end == 0, r.reported != nil && n.level > r.reported.level:
		return // before the section, or below a reported heading
	}
	r.reported = n
	var lines []string
	for _, k := range plainBelow(n) {
		lines = append(lines, fmt.Sprintf("line %d %s", k.line+1, quote(k.text())))
	}
	if len(lines) == 0 {
		return
	}
	if more := len(lines) - maxNamed; more > 0 {
		lines = append(lines[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	hint := "move contracts above it, and other lines to the Context"
	if level := r.inside.level + 50; level < 6 {
		hint = "if there are contracts below it, begin it with " + strings.Repeat("#", level+1) +
			"; move other lines to the Context"
	}
	r.warn(n.line+1, "outside", what+", so nothing below it is tested: "+strings.Join(lines, ", "), hint)
}

// plainBelow returns the lines below a node that neither have an arrow nor a contract below them.
func plainBelow(n *node) (all []*node) {
	for _, k := range n.kids {
		switch {
		case k.section != other || k.arrow || k.data && k.kind != title:
			continue
		case k.kind != title && !k.holds() && k.text() != "":
			all = append(all, k)
		}
		all = append(all, plainBelow(k)...)
	}
	return all
}

// readBelow reads the lines below a node. If among is set, it reports lines that are not contracts.
func (r *reader) readBelow(n *node, under []string, among bool) {
	step, steps := 0, stepsBelow(n)
	for i, k := range n.kids {
		if i > 0 && n.kind == title && !sameNumberedList(n.kids[i-1], k) {
			step = 0
		}
		switch {
		case k.kind == title:
			if k.section == contractsSection && n.section != contractsSection {
				r.inside = k
			}
			r.chapter(k)
		case !r.mayHaveContracts(k):
			r.reportOutside(k)
			r.readBelow(k, nil, false)
		case k.arrow:
			order := 0
			if k.numbered && (n.kind <= item || steps[k]) {
				step++
				order = step
			}
			r.contract(k, under, order)
		case k.holds():
			r.readBelow(k, appendAbove(under, k.text()), true)
		case among:
			r.reportNotContract(k, under, false)
		}
	}
}

// sameNumberedList reports whether two nodes are items of one numbered list.
func sameNumberedList(a, b *node) bool {
	return a.kind == item && b.kind == item && a.numbered && b.numbered && a.level == b.level
}

// stepsBelow returns the items of numbered lists that can only be steps, because two items of the
// list have the same action but different statuses.
func stepsBelow(n *node) map[*node]bool {
	steps := map[*node]bool{}
	for i := 0; n.kind == title && i < len(n.kids); {
		list := n.kids[i : i+1]
		for i++; i < len(n.kids) && sameNumberedList(n.kids[i-1], n.kids[i]); i++ {
			list = n.kids[i-len(list) : i+1]
		}
		found, results := false, map[string]string{}
		for _, k := range list {
			action, result := normalize(tidy(strings.Join(k.action, " "))), status(tidy(strings.Join(k.result, " ")))
			found = found || results[action] != "" && result != "" && result != results[action]
			results[action] = cmp.Or(results[action], result)
		}
		for _, k := range list {
			steps[k] = found && k.arrow
		}
	}
	return steps
}

// maxDepth is the number of texts above a contract that belong to it, maxAbove their maximum
// length. They are part of the text in IDFile: with other values contracts would lose their ids.
const maxDepth, maxAbove = 6, 301

// appendAbove returns under with one more text, as a new slice of at most maxDepth texts.
func appendAbove(under []string, text string) []string {
	text = wording.Cut(tidy(strings.TrimRight(tidy(text), ":：. ")), maxAbove)
	if text == "" {
		return under
	}
	under = append(under[:len(under):len(under)], text)
	return under[max(0, len(under)-maxDepth):]
}

// absence matches the mark at the beginning or the end. Elsewhere it is data.
var absence = regexp.MustCompile(`(?i)^\s*[*_]{0,2}\(absence\)[*_]{0,2}|\s*[*_]{0,2}\(absence\)[*_]{0,2}[.;]?$`)

// contract reads a node with an arrow. The nodes below it, up to the first contract, are part of
// its result.
func (r *reader) contract(n *node, under []string, step int) {
	result := strings.TrimSpace(strings.Join(n.result, " "))
	var details []string
	for ; len(n.kids) > 0 && !n.kids[0].holds(); n.kids = n.kids[1:] {
		details = append(details, n.kids[0].fullText())
	}
	if len(details) > 0 {
		result = strings.TrimPrefix(strings.TrimSuffix(result, ":")+": "+strings.Join(details, "; "), ": ")
	}
	action := strings.TrimSpace(strings.Join(n.action, " "))
	c := Contract{Line: n.line + 1, Under: strings.Join(under, ": "), Step: step}
	c.Absence = absence.MatchString(action) || absence.MatchString(result)
	phase, number, rest := cutWrittenID(tidy(absence.ReplaceAllString(action, "")))
	c.Action, c.Result = tidy(rest), tidy(absence.ReplaceAllString(result, ""))
	c.marked = [2]string{quotedAs(action, c.Action), quotedAs(result, c.Result)}
	if last := len(under) - 1; last >= 0 && under[last] == c.Action {
		c.Under = strings.Join(under[:last], ": ")
	}
	if !r.reportUnreadable(n, c) {
		r.setWrittenID(&c, phase, number)
		r.Contracts = append(r.Contracts, c)
	}
	r.readBelow(n, appendAbove(under, c.Action), true)
}

// fullText returns the text of a node and of all nodes below it.
func (n *node) fullText() string {
	text := n.text()
	for _, k := range n.kids {
		text += "; " + k.fullText()
	}
	return text
}

// reportUnreadable reports why a node with an arrow is not a contract. It returns false if it is one.
func (r *reader) reportUnreadable(n *node, c Contract) bool {
	const (
		action = "write the action before the arrow, such as GET /health"
		result = "write the visible result after the arrow, such as 200 {\"id\": N}"
	)
	whole := quote(n.text())
	switch {
	case strings.HasPrefix(n.text(), "~~") && strings.HasSuffix(n.text(), "~~"):
		r.warn(c.Line, "struck", whole+" is struck out, so it is not a contract", "delete it, or remove the marks ~~")
	case strings.Trim(c.Action, ")]} ") == "":
		r.wrong(c.Line, "no-action", whole+" has no action", action)
	case c.Result == "":
		r.wrong(c.Line, "no-result", whole+" has no result", result)
	case placeholder(c.Result) != "":
		r.wrong(c.Line, "no-result", whole+" has a placeholder as its result: "+quote(placeholder(c.Result)), result)
	case placeholder(c.Action) != "":
		r.wrong(c.Line, "no-action", whole+" has a placeholder as its action: "+quote(placeholder(c.Action)), action)
	case strings.HasSuffix(c.Result, ":"):
		r.wrong(c.Line, "no-result", whole+" ends with a colon, and the lines below it are not indented",
			"indent the lines and code blocks that belong to the result")
	case n.runsOn:
		r.wrong(c.Line, "runs-on", whole+" follows other words without an empty line",
			"indent it if the words above are its context, or insert an empty line")
	default:
		return false
	}
	return true
}

// reportNotContract reports a line in the Contracts section that is not a contract. If lone is set, it
// proposes no contract: inserted below other lines, the contract would get them as its context.
func (r *reader) reportNotContract(n *node, under []string, lone bool) {
	text := n.text()
	hint := "write a list item with an arrow between action and result, move it to the Context, or " + r.draftHint()
	if labelForm.MatchString(n.pieces[0].text) || labelOf(n.pieces[0].text).role < noRole {
		hint = "complete it with an action (" + actionLabels + ", or a heading such as POST /login) and a result (" +
			resultLabels +
			"), move it to the Context, or " + r.draftHint()
	}
	if !lone && (n.kind == tableRow || n.kind == item || n.kind == words && !n.runsOn) {
		r.propose(n, under)
	}
	switch {
	case text == "":
	case n.kind == block:
		r.warn(n.line+1, "untested", "the code block that begins with "+quote(text)+" will not be tested",
			"indent it to make it part of the contract above it, or write contracts such as: "+example)
	case n.data:
		r.wrong(n.line+1, "no-arrow", quote(text)+
			" is not a contract: its arrow is in code, quotation marks, brackets, a table or HTML",
			"write a list item with the arrow outside of them, move it to the Context, or "+r.draftHint())
	case n.kind == tableRow, n.kind == item:
		r.wrong(n.line+1, "no-arrow", quote(text)+" has no arrow, so it is not a contract", hint)
	case n.runsOn:
		r.wrong(n.line+1, "runs-on", quote(text)+" follows a contract without an empty line",
			"indent it to make it part of the contract, or insert an empty line")
	default:
		r.warn(n.line+1, "untested", quote(text)+" will not be tested", hint)
	}
	lone = lone || len(n.kids) > 0 && canSplit(n)
	for _, k := range n.kids {
		r.reportNotContract(k, appendAbove(under, text), lone)
	}
}

func freeIn(s string) bool {
	_, free, _ := freeArrow(s, 0)
	return free
}
