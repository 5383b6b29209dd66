package spec

import (
	"strings"

	"abl/internal/lazyregexp"
)

// role is the meaning of a labelled line. A role holds for the later ones below it.
type role int

const (
	featureRole role = iota
	titleRole        // what is above the first label, too
	givenRole
	actionRole
	inputRole
	resultRole
	moreRole // goes on with the line before it
	noRole
)

var roles = map[string]role{
	"feature": featureRole, "scenario": titleRole, "example": titleRole, "test case": titleRole,
	"given": givenRole, "precondition": givenRole, "preconditions": givenRole,
	"when": actionRole, "request": actionRole, "action": actionRole, "command": actionRole, "endpoint": actionRole,
	"input": inputRole, "query": inputRole, "parameters": inputRole, "request body": inputRole,
	"then": resultRole, "success": resultRole, "expected": resultRole, "response": resultRole, "result": resultRole,
	"output": resultRole, "fail": resultRole, "failure": resultRole, "error": resultRole, "expected result": resultRole,
	"expected output": resultRole, "expected response": resultRole, "status": resultRole, "status code": resultRole,
	"expected status": resultRole, "response status": resultRole, "response body": resultRole, "expected body": resultRole,
	"response headers": resultRole, "expected headers": resultRole,
	"body": inputRole, "headers": inputRole, // of a result if there is one above
	"and": moreRole, "but": moreRole,
}

const (
	actionLabels = "Given, When, Request, Action, Input, Query, Body, Headers"
	resultLabels = "Then, Success, Expected, Response, Fail (REASON)"
)

var (
	// "**Fail (REASON):** 401", "Response 201: …"
	labelLine = lazyregexp.New(`^[*_]{0,2}([A-Za-z]+(?: [A-Za-z]+)?)` +
		`(?:[*_]{0,2}\s*[*_]{0,2}\(([^()]+)\)|\s([1-5]\d\d(?: [A-Za-z ]+)?))?[*_]{0,2}\s*[:：][*_]{0,2}(?:\s+(.*))?$`)
	sentence = lazyregexp.New(`^[*_]{0,2}(Given|GIVEN|When|WHEN|Then|THEN|And|AND|But|BUT)[*_]{0,2}\s+(\S.*)$`)
	// Given, when and then in one line.
	criterion = lazyregexp.New(`^[*_]{0,2}(?:(Given)\b[*_]{0,2}\s+(.+?),?\s+)?[*_]{0,2}(?i:(when)\b[*_]{0,2}\s+(.+?),?\s+[*_]{0,2}then)\b[*_]{0,2}\s+(.+)$`)
	whenThen  = lazyregexp.New(`(?i)\b(?:when|then)\b`)
	// Whatever has the form of a label.
	labelForm  = lazyregexp.New(`^(?:\*\*[^*]+\*\*:?|__[^_]+__:?|[A-Z][\w /-]{0,40}(?:\([^()]*\))?[*_]{0,2}[:：])(?:\s|$)`)
	statusCode = lazyregexp.New("^[*_`]*[1-5]\\d\\d\\b")
	headerLine = lazyregexp.New(`^[A-Z][A-Za-z-]*: `)
)

// label is what a line with a label says. The text has the label where the words need it.
type label struct {
	role              role
	sep, reason, text string // sep parts the line from the one that it goes on with
}

func labelOf(line string) label {
	line = strings.TrimSpace(line)
	if m := sentence().FindStringSubmatch(line); m != nil {
		switch name := strings.ToLower(m[1]); name {
		case "then":
			return label{role: resultRole, text: m[2]}
		case "and", "but":
			return label{role: moreRole, sep: " " + name + " ", text: m[2]}
		default:
			return label{role: roles[name], text: m[1] + " " + m[2]}
		}
	}
	m := labelLine().FindStringSubmatch(line)
	if m == nil {
		return label{role: noRole}
	}
	name, sep := strings.ToLower(m[1]), ""
	is, known := roles[name]
	if strings.HasSuffix(name, "body") || strings.HasSuffix(name, "headers") {
		sep = "; "
	}
	reason, text := m[3]+strings.TrimSpace(m[2]), strings.TrimSpace(m[4])
	switch {
	case !known, reason != "" && is != resultRole, strings.Contains(name, "status") && !statusCode().MatchString(text):
		return label{role: noRole}
	case statusCode().MatchString(reason):
		return label{role: is, text: strings.TrimSuffix(reason+": "+text, ": ")}
	case is == resultRole, is == actionRole:
		return label{role: is, sep: sep, reason: reason, text: text}
	}
	return label{role: is, sep: sep, text: strings.TrimSpace(m[1] + ": " + text)}
}

// criteria returns a line as it is, or its parts if given, when and then are all in it.
func criteria(p piece) []piece {
	m := criterion().FindStringSubmatch(p.text)
	if m == nil || p.code || labelOf(p.text).role == noRole || len(whenThen().FindAllString(p.text, 3)) != 2 {
		return []piece{p}
	}
	all := []piece{{line: p.line, column: p.column, text: m[3] + " " + m[4]}, {line: p.line, column: p.column + 1, text: "Then " + m[5]}}
	all[0].text = strings.ToUpper(all[0].text[:1]) + all[0].text[1:]
	if m[1] != "" {
		all = append([]piece{{line: p.line, column: p.column, text: m[1] + " " + m[2]}}, all...)
	}
	return all
}

// phrase is the text of lines with the same role.
type phrase struct {
	line, column int
	parts        []string // with what parts them
	used         bool     // a result follows it
}

func (p *phrase) text() string { return strings.Join(p.parts, "") }

func (p *phrase) empty() bool { return len(p.parts) == 0 }

// open reports whether the value is still to come.
func (p *phrase) open() bool { return p.empty() || strings.HasSuffix(p.parts[len(p.parts)-1], ":") }

func (p *phrase) add(sep, text string) {
	switch {
	case text == "":
	case p.empty():
		p.parts = []string{text}
	case p.open():
		p.parts = append(p.parts, " ", text)
	default:
		p.parts = append(p.parts, sep, text)
	}
}
