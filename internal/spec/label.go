package spec

import (
	"regexp"
	"strings"
)

// role is the meaning of a labelled line. A phrase with a role applies to later roles below it.
type role int

const (
	featureRole role = iota
	titleRole        // also the text above the first label
	givenRole
	actionRole
	inputRole
	resultRole
	moreRole // continues the line before it
	noRole
)

var roles = rolesOf(map[role]string{
	featureRole: "feature",
	titleRole:   "scenario, example, test case",
	givenRole:   "given, precondition, preconditions",
	actionRole:  "when, request, action, command, endpoint",
	inputRole:   "input, query, parameters, request body, body, headers", // the last two may belong to a result
	resultRole: "then, success, expected, response, result, output, fail, failure, error, expected result, " +
		"expected output, expected response, status, status code, expected status, response status, " +
		"response body, expected body, response headers, expected headers",
	moreRole: "and, but",
})

// rolesOf maps each label in the lists to its role.
func rolesOf(lists map[role]string) map[string]role {
	all := map[string]role{}
	for is, labels := range lists {
		for name := range strings.SplitSeq(labels, ", ") {
			all[name] = is
		}
	}
	return all
}

const (
	actionLabels = "Given, When, Request, Action, Input, Query, Body, Headers"
	resultLabels = "Then, Success, Expected, Response, Fail (REASON)"
)

var (
	// "**Fail (REASON):** 401", "Response 201: …"
	labelLine = regexp.MustCompile(`^[*_]{0,2}([A-Za-z]+(?: [A-Za-z]+)?)` +
		`(?:[*_]{0,2}\s*[*_]{0,2}\(([^()]+)\)|\s([1-5]\d\d(?: [A-Za-z ]+)?))?[*_]{0,2}\s*[:：][*_]{0,2}(?:\s+(.*))?$`)
	sentence = regexp.MustCompile(`^[*_]{0,2}(Given|GIVEN|When|WHEN|Then|THEN|And|AND|But|BUT)[*_]{0,2}\s+(\S.*)$`)
	// "Given …, when …, then …" on one line.
	criterion = regexp.MustCompile(`^[*_]{0,2}(?:(Given)\b[*_]{0,2}\s+(.+?),?\s+)?[*_]{0,2}(?i:(when)\b[*_]{0,2}\s+(.+?),?\s+[*_]{0,2}then)\b[*_]{0,2}\s+(.+)$`)
	whenThen  = regexp.MustCompile(`(?i)\b(?:when|then)\b`)
	// Any line in the form of a label.
	labelForm  = regexp.MustCompile(`^(?:\*\*[^*]+\*\*:?|__[^_]+__:?|[A-Z][\w /-]{0,40}(?:\([^()]*\))?[*_]{0,2}[:：])(?:\s|$)`)
	statusCode = regexp.MustCompile("^[*_`]*[1-5]\\d\\d\\b")
	headerLine = regexp.MustCompile(`^[A-Z][A-Za-z-]*: `)
)

// label is the content of a labelled line. text includes the label if the sentence needs it.
type label struct {
	role              role
	sep, reason, text string // sep separates the line from the one that it continues
}

// labelOf returns the label at the beginning of a line, or one without a role.
func labelOf(line string) label {
	line = strings.TrimSpace(line)
	if m := sentence.FindStringSubmatch(line); m != nil {
		switch name := strings.ToLower(m[1]); name {
		case "then":
			return label{role: resultRole, text: m[2]}
		case "and", "but":
			return label{role: moreRole, sep: " " + name + " ", text: m[2]}
		default:
			return label{role: roles[name], text: m[1] + " " + m[2]}
		}
	}
	m := labelLine.FindStringSubmatch(line)
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
	case !known, reason != "" && is != resultRole, strings.Contains(name, "status") && !statusCode.MatchString(text):
		return label{role: noRole}
	case statusCode.MatchString(reason):
		return label{role: is, text: strings.TrimSuffix(reason+": "+text, ": ")}
	case is == resultRole, is == actionRole:
		return label{
			role:   is,
			sep:    sep,
			reason: reason,
			text:   text,
		}
	}
	return label{role: is, sep: sep, text: strings.TrimSpace(m[1] + ": " + text)}
}

// criteria splits a line with given, when and then into its parts. It returns any other line
// unchanged.
func criteria(p piece) []piece {
	m := criterion.FindStringSubmatch(p.text)
	if m == nil || p.code || labelOf(p.text).role == noRole || len(whenThen.FindAllString(p.text, 3)) != 2 {
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
	strings.Builder

	line, column int
	used         bool // a result follows
}

// open reports whether the text still lacks its value.
func (p *phrase) open() bool { return p.Len() == 0 || strings.HasSuffix(p.String(), ":") }

func (p *phrase) add(sep, text string) {
	switch {
	case text == "" || p.Len() == 0:
		sep = ""
	case p.open():
		sep = " "
	}
	p.WriteString(sep + text)
}
