package spec

import (
	"slices"
	"strings"

	"abl/internal/lazyregexp"
)

// node is one thing that is said, and what is indented below it: a list item, a
// line, a paragraph, a code block, or a heading with all up to the next one.
type node struct {
	line, last int // indexes of its first and last line
	level      int // what is deeper belongs to it: its columns, less than none for a heading
	kind       nodeKind
	section    section
	under      []string // of a heading: itself and those above it, as far as they are context
	numbered   bool
	mark       string   // of a list item
	head       []string // of a row: the cells of the table's head, if it has one
	bold       bool

	said           []string // its lines without marks
	pieces         []piece  // its lines and those of its code blocks, as written
	action, result []string // the same up to the arrow, and after it
	arrow          bool
	data           bool // it has an arrow in code, quotation marks or brackets alone
	open           int  // brackets that are not closed yet
	plain          bool // a code block whose lines may be contracts
	runsOn         bool // a contract and other words stand on lines without an empty one between

	kids []*node
}

// piece is one line of a node, as it is written behind the marks of a list.
type piece struct {
	line, column int // the index of the line, and its columns before the text
	text         string
	code         bool // it is in a code block
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
	tableRow // of a table, or in a quotation or HTML: never a contract
	block    // a code block in which no contract is looked for
)

func (n *node) text() string { return strings.Join(n.said, " ") }

// holds says that it is a contract, or that there is one below it.
func (n *node) holds() bool { return n.arrow || slices.ContainsFunc(n.kids, (*node).holds) }

// leads says that words belong to those right below them, as "With a token:"
// does, and a line in bold.
func (n *node) leads() bool {
	return n.kind == words && !n.arrow && (n.bold && len(n.said) == 1 || strings.HasSuffix(n.said[len(n.said)-1], ":"))
}

// add takes the text of a line.
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

// tree makes nodes of the lines of a spec, which it walks over once.
type tree struct {
	*reader
	lines   []string
	path    []*node // from the root to the node that the next line may belong to
	outer   int     // how many of them give no context
	head    []string
	headTo  int // the last line of the table that head belongs to
	comment int // line that began the comment we are in, counted from 1, 0 outside
}

func (t *tree) top() *node { return t.path[len(t.path)-1] }

// grow reads the lines below the first one, the title.
func (r *reader) grow(lines []string, first int) *node {
	t := &tree{reader: r, lines: lines, path: []*node{{level: -100, kind: title, last: -1}}, outer: 1}
	for i := first + 1; i < len(lines); i++ {
		line, next := t.uncommented(i), strings.Join(lines[i+1:min(i+2, len(lines))], "")
		text := strings.TrimSpace(line)
		mark, language, fence := Fence(line)
		switch level, rows, name := headingOf(line, next); {
		case text == "", ruleLine().MatchString(text):
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
		t.warn(t.comment, "open-comment", "this comment is not closed, so the rest of the spec is ignored", "close it with -->")
	}
	return t.path[0]
}

// uncommented is line i with what of it is in no comment.
func (t *tree) uncommented(i int) string {
	line := plainSpaces(t.lines[i])
	if t.comment > 0 {
		_, after, closed := strings.Cut(line, "-->")
		if !closed {
			return ""
		}
		t.comment, line = 0, after
	}
	line, _, open := strings.Cut(closedComment().ReplaceAllString(line, ""), "<!--")
	if open {
		t.comment = i + 1
	}
	return line
}

// heading begins a node for all up to the next heading. The name of a section, and
// what stands above it, is no context of contracts.
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
		n.under = with(nil, name[len(itemMark(name)):])
	default:
		n.under = with(up.under, name[len(itemMark(name)):])
	}
	t.HasContext = t.HasContext || n.section == contextSection
	t.HasContracts = t.HasContracts || n.section == contractsSection
	t.push(n, name, piece{line: i, text: raw})
}

// close ends the nodes that a line of some kind and indentation is not below.
// Words that lead others lead those beside them, the items of one list or lines.
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

// plain reads a line that may be a contract or go on with one.
func (t *tree) plain(i int, text string, indent int) {
	mark := itemMark(text)
	said, whole := tidy(text[len(mark):]), piece{line: i, column: indent, text: strings.TrimSpace(text[len(mark):])}
	at, free, _ := freeArrow(said, 0)
	begins := free && strings.TrimSpace(said[:at.start]) == ""
	n := &node{level: indent, bold: boldLine().MatchString(strings.TrimSpace(text))}
	switch before := t.top(); {
	case said == "" && mark == "":
	case ruler().MatchString(text):
		t.ruler(i)
	case row().MatchString(text), wrapped().MatchString(text) && hasArrow(text):
		t.close(indent, tableRow)
		n.kind = tableRow
		if t.headTo == i-1 {
			n.head, t.headTo = t.head, i
		}
		t.push(n, strings.TrimSpace(text), whole)
	case mark != "":
		t.close(indent, item)
		n.kind, n.mark, n.numbered = item, mark, numbered().MatchString(mark)
		t.push(n, said, whole)
	case t.joins(i, said, indent, begins):
		t.top().add(said, whole)
	default:
		k := words
		if free {
			k = block // a contract: words beside it may lead it
		}
		t.close(indent, k)
		if up := t.top(); indent > up.level && up.kind <= item && len(up.kids) == 0 && !up.leads() && (up.open > 0 || !free || up.text() == "") {
			t.top().add(said, whole)
			return
		}
		t.push(n, said, whole)
		beside := before.last == i-1 && indent <= before.level && before.kind <= item
		n.runsOn = beside && (before.arrow && !n.arrow || n.arrow && !before.arrow && before.kind == words && !before.leads())
	}
}

// ruler reads the line below the head of a table: the row above it is not one of
// its rows. A request with its status code is a row all the same.
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

// joins says that a line goes on with the node before it although it may not be
// indented: it begins with the arrow, closes a bracket, or is of one paragraph.
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

// A block in one of these holds contracts; one in another language is an example,
// and "->" or "=>" in it are that language's.
var ownLanguage = lazyregexp.New(`(?i)^(?:te?xt|plain|plaintext|contracts?|specs?|http|abl|markdown|md|gherkin|feature|cucumber|console|none)?$`)

// block reads the code block that begins with line i, and returns its last line.
// It goes on with a contract that it is indented below; else its lines are read
// like others where there is an arrow in it.
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
	speaks = speaks && ownLanguage().MatchString(language)
	t.close(indent, block)
	up := t.top()
	below := indent > up.level && up.kind <= item && len(up.kids) == 0 && (up.arrow || !speaks)
	var body []piece
	for j := i + 1; j < end; j++ {
		text := plainSpaces(t.lines[j])
		switch said := strings.TrimSpace(text); {
		case said == "" || speaks && !below && remark().MatchString(said) && !freeIn(said):
		case speaks && !below:
			t.plain(j, text, max(indent, columns(text)))
		default:
			body = append(body, piece{line: j, column: columns(text), text: said, code: true})
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
		n := &node{level: indent, kind: block, plain: ownLanguage().MatchString(language)}
		t.push(n, body[0].text, body[0])
		n.line, n.last, n.pieces = i, i, body
	}
	return end
}

// closes says that a line ends the code block that began with mark.
func closes(line, mark string) bool {
	text := strings.TrimSpace(plainSpaces(line))
	return strings.HasPrefix(text, mark) && strings.Trim(text, mark[:1]) == ""
}

// remark is a comment in a code block, unless there is an arrow in it: "--help" and
// "//host/x" begin like one.
var remark = lazyregexp.New(`^(?:#|//|--)`)
