package spec

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// example is a contract for hints that cannot use text of the spec.
const example = "- GET /health → 200"

// offer is a contract that the hint of a problem proposes.
type offer struct {
	problem int // index in reader.problems
	key     string
	line    string // ready to be pasted
}

// draftHint returns the end of a hint: the command with which a model writes the contracts of the spec.
func (r *reader) draftHint() string {
	return "have a model write it: abl spec draft .abl/specs/" + fileOf(r.Number)
}

// propose records a proposal for the next problem. writeProposals writes them into the hints.
func (r *reader) propose(n *node, under []string) {
	action, result := splitContract(n)
	if r.nested || action == "" || len(n.kids) > 0 || r.counted[n.kind != words] >= r.most {
		return
	}
	mark := "-"
	if n.numbered { // a step needs its number
		mark = strings.TrimSpace(n.mark)
	}
	line := mark + " " + action + " → " + result
	if isOneContract(line, action, result) {
		key := normalize(strings.Join(under, ": ") + " " + tidy(action))
		r.offers = append(r.offers, offer{problem: len(r.problems), key: key, line: line})
	}
}

// writeProposals writes the proposals into the hints of their problems. It drops proposals whose action
// is that of another proposal or contract, because the two would contradict each other.
func (r *reader) writeProposals() {
	if len(r.offers) == 0 {
		return
	}
	count := map[string]int{}
	for _, c := range r.Contracts {
		count[normalize(c.Under+" "+c.Action)]++
	}
	for _, o := range r.offers {
		count[o.key]++
	}
	for _, o := range r.offers {
		if count[o.key] == 1 {
			r.problems[o.problem].Hint = "move it to the Context, or write it as: " + o.line
		}
	}
}

// isOneContract reports whether line in a spec is one contract with this action and result and without
// problems.
func isOneContract(line, action, result string) bool {
	if utf8.RuneCountInString(line) > maxAbove {
		return false // too long for a hint, which is one line
	}
	text := "# Phase 1: T\n\n## Contracts\n\n" + line + "\n- next → 1\n" // an open bracket in line would include the next one
	r := &reader{
		Spec:    Spec{Number: 1},
		most:    maxProblems,
		counted: map[bool]int{},
		nested:  true,
	}
	r.read([]byte(text))
	for _, c := range r.Contracts {
		r.lintContract(c)
	}
	if len(r.Contracts) != 2 || len(r.problems) > 0 {
		return false
	}
	c := r.Contracts[0]
	return c.Action == tidy(action) && c.Result == tidy(result) && c.Under == "" && !c.Absence && !c.Written
}

// splitContract returns the action and the result of a line without an arrow, or "" if they are not
// certain. It splits a request or command with its response, and the row of a table whose header
// names the columns.
func splitContract(n *node) (action, result string) {
	if len(n.said) != 1 || n.last != n.line || n.arrow || n.data || n.open > 0 {
		return "", ""
	}
	text := n.said[0]
	if n.kind == tableRow {
		return splitRow(cells(text), n.head)
	}
	return splitWords(strings.TrimLeft(text, "> "))
}

func canSplit(n *node) bool {
	action, _ := splitContract(n)
	return action != ""
}

// separator matches a colon, a dash between spaces, or a verb. After a command, the verb stays
// in the contract.
var separator = regexp.MustCompile(`:(?:\*\*)?\s+|\s+[-–—]\s+` +
	`|(\s+(?:(?:should|must|shall|will|MUST|SHALL)\s+)?` +
	`(?:returns?|(?:responds?|answers?|replies|reply)(?:\s+with)?|gives?|yields?)\s+(?:an?\s+|the\s+)?)` +
	`|(\s+)(?:exits|prints|writes)\s`)

// splitWords splits a line if exactly one separator has a request or a command before it and a
// possible response after it.
func splitWords(text string) (action, result string) {
	w, from, found := enclosure{}, 0, 0
	for _, m := range separator.FindAllStringSubmatchIndex(text, -1) {
		start, end, verb := m[0], m[1], m[2] >= 0 || m[4] >= 0
		if m[4] >= 0 {
			end = m[5]
		}
		w.walk(text[from:start])
		free := w == enclosure{}
		w.walk(text[start:m[1]])
		from = m[1]
		before, after := text[:start], text[end:]
		if strings.HasPrefix(text[start:], ":**") { // "**GET /a:** 200"
			before += "**"
		}
		if free && areActionAndResult(before, after, verb) {
			action, result, found = strings.TrimSpace(before), strings.TrimSpace(after), found+1
		}
	}
	if found != 1 {
		return "", ""
	}
	return action, result
}

var (
	request = regexp.MustCompile(`^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)\s+` +
		`(?:https?:/)?/(?:\S*[^\s:,;.])?(?:\s+(\S.*))?$`)
	// A code span that begins with an option or a path is not a command line.
	command = regexp.MustCompile("^(?:[Rr]un\\s+)?`[a-z0-9_.][^`]*`(?:\\s+(\\S.*))?$")

	detail = regexp.MustCompile("^[{(\\[\"]")
	clause = regexp.MustCompile(`^(?:with|without|as|for|by|from|using|on|in)\s`)
	timing = regexp.MustCompile(`^(?:after|before|when|while|if|once)\s`)
	verbal = regexp.MustCompile(`(?i)\b(?:not|never|no longer|should|must|shall|will|would|may|might|can|cannot|` +
		`returns?|responds?|answers?|gives?|\w+n['’]t)\b`)
	unended  = regexp.MustCompile(`(?i)(?:\d|\b(?:and|or|then|also|only|it|which|that|who|to|is|are|be|of|than))$`)
	methodIn = regexp.MustCompile(method)

	code = regexp.MustCompile(`^((?:HTTP(?:/[\d.]+)?\s+)?(?:[Ss]tatus\s+)?(?:[Cc]ode\s+)?)[1-5]\d\d` +
		`(?:$|[,.;:](?:\s|$)|\s+([{\[]|` + reason + `)|\s+(?:["(` + "`" + `]|(?:and|with|plus)\s))`)
	output   = regexp.MustCompile(`^(?:exits (?:with )?(?:code |status )*\d|exit (?:code|status) \d|prints\s+\S|writes\s+\S)`)
	standard = regexp.MustCompile(`\bon (?:standard (?:output|error)|std(?:out|err))\b`)
)

const reason = `(?:OK|Created|Accepted|No Content|Moved Permanently|Found|See Other|Not Modified|` +
	`Temporary Redirect|Permanent Redirect|Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|` +
	`Method Not Allowed|Not Acceptable|Conflict|Gone|Length Required|Precondition Failed|Payload Too Large|` +
	`Content Too Large|Unsupported Media Type|Unprocessable Entity|Unprocessable Content|Too Many Requests|` +
	`Internal Server Error|Not Implemented|Bad Gateway|Service Unavailable|Gateway Timeout)\b`

// areActionAndResult reports whether before is a request or a command and after its response. "GET /a with
// limit: 200" is neither: 200 is the limit.
func areActionAndResult(before, after string, verb bool) bool {
	before, after = strings.TrimSpace(strings.ReplaceAll(before, "**", "")), tidy(after)
	if condition.MatchString(standard.ReplaceAllString(prose(after), "")) || methodIn.MatchString(after) {
		return false
	}
	rest, sure := "", verb
	if m := request.FindStringSubmatch(strings.ReplaceAll(before, "`", "")); m != nil {
		answer := code.FindStringSubmatch(after)
		if answer == nil {
			return false
		}
		rest, sure = m[1], verb || answer[1] != "" || answer[2] != ""
	} else if m := command.FindStringSubmatch(before); m != nil && output.MatchString(after) {
		rest, sure = m[1], true
	} else {
		return false
	}
	words := prose(rest)
	switch {
	case verbal.MatchString(words), methodIn.MatchString(words):
		return false
	case rest == "", detail.MatchString(rest):
		return true
	case clause.MatchString(rest):
		return sure && !unended.MatchString(words)
	}
	return timing.MatchString(rest) && sure && !verb && !unended.MatchString(words) // "when the cache returns 200"
}

// cells returns the cells of a table row.
func cells(row string) (all []string) {
	const bar = "\x00" // a spec cannot contain it
	row = strings.TrimSpace(strings.ReplaceAll(row, `\|`, bar))
	for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), "|") {
		all = append(all, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return all
}

// column is the meaning of a table column.
type column int

const (
	unknownColumn column = iota
	numberColumn         // number of the row
	methodColumn
	pathColumn
	actionColumn
	statusColumn
	resultColumn
)

// columnOf returns the meaning of a table column with this title.
func columnOf(name string) column {
	switch strings.ToLower(strings.Trim(tidy(name), ":. ")) {
	case "#", "no", "nr":
		return numberColumn
	case "method", "http method", "verb":
		return methodColumn
	case "path", "endpoint", "route", "url", "uri":
		return pathColumn
	case "action", "request", "command", "when":
		return actionColumn
	case "status", "status code", "http status", "http code":
		return statusColumn
	case "result", "expected", "expected result", "response", "expected response", "outcome", "expected outcome",
		"output", "expected output", "then":
		return resultColumn
	}
	return unknownColumn
}

// splitRow splits a table row by the names of its columns. Without a header it accepts a request
// and a status code.
func splitRow(row, head []string) (action, result string) {
	last := len(row) - 1
	if last < 1 {
		return "", ""
	}
	if head == nil {
		action, result = row[0], row[last]
		for _, cell := range row[1:last] {
			action = joinCells(action, cell)
		}
		if !areActionAndResult(action, result, false) {
			return "", ""
		}
		return action, result
	}
	of := map[column]string{}
	for i, cell := range row {
		name := unknownColumn
		if i < len(head) {
			name = columnOf(head[i])
		}
		_, twice := of[name]
		switch {
		case cell == "":
		case name == unknownColumn || twice || placeholder(tidy(cell)) != "":
			return "", ""
		case name == numberColumn && strings.Trim(cell, "0123456789.") != "":
			return "", ""
		default:
			of[name] = cell
		}
	}
	said, asked := of[actionColumn], joinCells(of[methodColumn], of[pathColumn])
	switch {
	case said != "" && asked != "", said == "" && !request.MatchString(tidy(asked)):
		return "", ""
	case of[statusColumn] != "" && !code.MatchString(tidy(of[statusColumn])):
		return "", ""
	}
	return said + asked, joinCells(of[statusColumn], of[resultColumn])
}

// joinCells joins two cells. It removes their code marks, which would no longer enclose the whole text.
func joinCells(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return tidy(a) + " " + tidy(b)
}
