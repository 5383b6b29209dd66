package spec

import (
	"regexp"
	"slices"
	"strings"
)

// node is a list item, a line, a paragraph, a code block, or a heading, with the nodes indented
// below it. A heading contains all nodes up to the next heading.
type node struct {
	line, last int // indexes of the first and the last line
	level      int // nodes with a higher level belong to it: the indentation, negative for a heading
	kind       nodeKind
	section    section
	under      []string // of a heading: the headings that are context of its contracts, with itself
	numbered   bool
	mark       string   // marker of a list item
	head       []string // of a row: the cells of the table's header, if any
	bold       bool

	said           []string // the lines without marks
	pieces         []piece  // the lines, with those of code blocks, as written
	action, result []string // the lines before and after the arrow
	arrow          bool
	data           bool // the only arrows are in code, quotation marks or brackets
	open           int  // number of open brackets
	plain          bool // a code block that may contain contracts
	runsOn         bool // no empty line between a contract and other text

	kids []*node
}

// piece is one line of a node, as written, without the list marker.
type piece struct {
	line, column int // index of the line, indentation of the text
	text         string
	code         bool // in a code block
}

func texts(all []piece) (texts []string) {
	for _, p := range all {
		texts = append(texts, p.text)
	}
	return texts
}

type nodeKind int

const (
	words nodeKind = iota // a line or a paragraph
	item
	title
	tableRow // a row of a table, or a line in a quotation or HTML: never a contract
	block    // a code block that contains no contracts
)

func (n *node) text() string { return strings.Join(n.said, " ") }

// holds reports whether the node is a contract or has one below it.
func (n *node) holds() bool { return n.arrow || slices.ContainsFunc(n.kids, (*node).holds) }

// leads reports whether the node introduces the nodes right below it, such as "With a token:" or a
// line in bold.
func (n *node) leads() bool {
	return n.kind == words && !n.arrow && (n.bold && len(n.said) == 1 || strings.HasSuffix(n.said[len(n.said)-1], ":"))
}

// add appends a line to the node.
func (n *node) add(text string, p piece) {
	i := p.line
	n.pieces = append(n.pieces, p)
	at, found, open := freeArrow(text, n.open)
	n.said, n.last, n.open = append(n.said, text), i, open
	switch {
	case n.arrow:
		n.result = append(n.result, text)
	case !found || n.kind > item:
		n.data = n.data || hasArrow(text)
		n.action = append(n.action, text)
	default:
		n.arrow = true
		n.action = append(n.action, text[:at.start])
		n.result = append(n.result, text[at.end:])
	}
}

// tree builds the nodes of a spec in one pass over its lines.
type tree struct {
	*reader
	lines   []string
	path    []*node // from the root to the node that the next line may belong to
	outer   int     // number of nodes in path that are not context
	head    []string
	headTo  int // the last line so far of the table with head
	comment int // line at which the current comment began, from 1, 0 outside of comments
}

func (t *tree) top() *node { return t.path[len(t.path)-1] }

// parseTree parses the lines after the first one, which is the title, and returns the root.
func (r *reader) parseTree(lines []string, first int) *node {
	t := &tree{
		reader: r,
		lines:  lines,
		path:   []*node{{level: -100, kind: title, last: -1}},
		outer:  1,
	}
	for i := first + 1; i < len(lines); i++ {
		line, next := t.uncommented(i), strings.Join(lines[i+1:min(i+2, len(lines))], "")
		text := strings.TrimSpace(line)
		mark, language, fence := Fence(line)
		switch level, rows, name := headingOf(line, next); {
		case text == "", ruleLine.MatchString(text):
		case fence:
			i = t.block(i, columns(line), mark, language)
		case rows > 0:
			t.heading(i, level, name)
			i += rows - 1
		default:
			t.plain(i, line, columns(line))
		}
	}
	if t.comment > 0 {
		t.warn(t.comment, "open-comment", "this comment is not closed, so the rest of the spec is ignored",
			"close it with -->")
	}
	return t.path[0]
}

// uncommented returns line i without comments.
func (t *tree) uncommented(i int) string {
	line := plainSpaces(t.lines[i])
	if t.comment > 0 {
		_, after, closed := strings.Cut(line, "-->")
		if !closed {
			return ""
		}
		t.comment, line = 0, after
	}
	line, _, open := strings.Cut(closedComment.ReplaceAllString(line, ""), "<!--")
	if open {
		t.comment = i + 1
	}
	return line
}

// heading begins a node for all lines up to the next heading. The name of a section and the
// headings above it are not context of contracts.
func (t *tree) heading(i, level int, name string) {
	t.close(level-50, words)
	up := t.top()
	n := &node{level: level - 50, kind: title, section: sectionOf(name, up.section)}
	raw := name
	name = tidy(name)
	t.outer = min(t.outer, len(t.path))
	switch {
	case n.section != up.section:
		t.outer = len(t.path) + 1
	case t.outer == len(t.path):
		n.under = appendAbove(nil, name[len(itemMark(name)):])
	default:
		n.under = appendAbove(up.under, name[len(itemMark(name)):])
	}
	t.HasContext = t.HasContext || n.section == contextSection
	t.HasContracts = t.HasContracts || n.section == contractsSection
	t.push(n, name, piece{line: i, text: raw})
}

// close ends the nodes that cannot contain a line of kind k with this indentation. A node that
// leads others stays open for items of a list.
func (t *tree) close(indent int, k nodeKind) {
	for len(t.path) > 1 {
		n := t.top()
		switch {
		case n.level > indent, k == item && n.kind == item && n.level == indent-1:
		case n.level < indent:
			return
		case n.leads() && (k == item || k == block && len(n.kids) == 0 || k == block && n.kids[0].kind != item):
			return
		}
		t.path = t.path[:len(t.path)-1]
	}
}

// push begins a node with its first line.
func (t *tree) push(n *node, text string, p piece) {
	n.line = p.line
	n.add(text, p)
	if n.kind != title {
		n.section = t.top().section
	}
	t.top().kids = append(t.top().kids, n)
	t.path = append(t.path, n)
}

// plain reads a line that may be a contract or continue one.
func (t *tree) plain(i int, text string, indent int) {
	mark := itemMark(text)
	said, whole := tidy(text[len(mark):]), piece{line: i, column: indent, text: strings.TrimSpace(text[len(mark):])}
	at, free, _ := freeArrow(said, 0)
	begins := free && strings.TrimSpace(said[:at.start]) == ""
	n := &node{level: indent, bold: boldLine.MatchString(strings.TrimSpace(text))}
	switch before := t.top(); {
	case said == "" && mark == "":
	case ruler.MatchString(text):
		t.ruler(i)
	case row.MatchString(text), wrapped.MatchString(text) && hasArrow(text):
		t.close(indent, tableRow)
		n.kind = tableRow
		if t.headTo == i-1 {
			n.head, t.headTo = t.head, i
		}
		t.push(n, strings.TrimSpace(text), whole)
	case mark != "":
		t.close(indent, item)
		n.kind, n.mark, n.numbered = item, mark, numbered.MatchString(mark)
		t.push(n, said, whole)
	case t.joins(i, said, indent, begins):
		t.top().add(said, whole)
	default:
		k := words
		if free {
			k = block // a contract: the line before may lead it
		}
		t.close(indent, k)
		if up := t.top(); indent > up.level && up.kind <= item && len(up.kids) == 0 && !up.leads() &&
			(up.open > 0 || !free || up.text() == "") {
			t.top().add(said, whole)
			return
		}
		t.push(n, said, whole)
		beside := before.last == i-1 && indent <= before.level && before.kind <= item
		n.runsOn = beside && (before.arrow && !n.arrow || n.arrow && !before.arrow && before.kind == words && !before.leads())
	}
}

// ruler reads the line below the header of a table and removes the header from the nodes. A request
// with its status code stays, because it is a row.
func (t *tree) ruler(i int) {
	n := t.top()
	if len(n.kids) > 0 || n.kind != tableRow || n.last != i-1 || n.data {
		return
	}
	if n.head == nil && canSplit(n) {
		return
	}
	t.path = t.path[:len(t.path)-1]
	t.top().kids = t.top().kids[:len(t.top().kids)-1]
	t.head, t.headTo = cells(n.text()), i
}

// joins reports whether a line without indentation continues the node before it: it begins with the
// arrow, closes a bracket, or belongs to the same paragraph.
func (t *tree) joins(i int, text string, indent int, begins bool) bool {
	n := t.top()
	beside := n.last == i-1
	switch {
	case n.kind > item || len(n.kids) > 0:
		return false
	case n.open > 0 && strings.IndexAny(text, ")]}") == 0:
		return true
	case !n.arrow && begins:
		return beside || indent > n.level
	}
	return beside && n.kind == words && indent == n.level && !n.arrow && !hasArrow(text)
}

// ownLanguage matches the languages of code blocks that may contain contracts. In other languages
// "->" and "=>" have other meanings.
var ownLanguage = regexp.MustCompile(`(?i)^(?:te?xt|plain|plaintext|contracts?|specs?|http|abl|markdown|md|gherkin|feature|cucumber|console|none)?$`)

// block reads the code block that begins with line i and returns the index of its last line. An
// indented block is part of the contract above it. Otherwise, if it has an arrow, block reads its
// lines like other lines.
func (t *tree) block(i, indent int, mark, language string) int {
	end, speaks := i+1, false
	for ; end < len(t.lines) && !closes(t.lines[end], mark); end++ {
		speaks = speaks || hasArrow(plainSpaces(t.lines[end]))
	}
	if end == len(t.lines) {
		t.warn(i+1, "open-block", "this code block is not closed, so it contains the rest of the spec",
			"close it with the same marks on a separate line")
	}
	language, _, _ = strings.Cut(language, " ")
	speaks = speaks && ownLanguage.MatchString(language)
	t.close(indent, block)
	up := t.top()
	below := indent > up.level && up.kind <= item && len(up.kids) == 0 && (up.arrow || !speaks)
	var body []piece
	for j := i + 1; j < end; j++ {
		text := plainSpaces(t.lines[j])
		switch said := strings.TrimSpace(text); {
		case said == "" || speaks && !below && comment.MatchString(said) && !freeIn(said):
		case speaks && !below:
			t.plain(j, text, max(indent, columns(text)))
		default:
			body = append(body, piece{
				line:   j,
				column: columns(text),
				text:   said,
				code:   true,
			})
		}
	}
	switch {
	case len(body) == 0:
	case below && up.arrow:
		up.result, up.last = append(up.result, texts(body)...), end
	case below:
		up.action, up.pieces, up.last = append(up.action, texts(body)...), append(up.pieces, body...), end
	default:
		t.close(indent, words)
		n := &node{level: indent, kind: block, plain: ownLanguage.MatchString(language)}
		t.push(n, body[0].text, body[0])
		n.line, n.last, n.pieces = i, i, body
	}
	return end
}

// closes reports whether a line ends the code block that began with mark.
func closes(line, mark string) bool {
	text := strings.TrimSpace(plainSpaces(line))
	return strings.HasPrefix(text, mark) && strings.Trim(text, mark[:1]) == ""
}

// comment matches a comment in a code block. A match with an arrow is not one: "--help",
// "//host/x".
var comment = regexp.MustCompile(`^(?:#|//|--)`)
