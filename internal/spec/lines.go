package spec

import (
	"strings"

	"abl/internal/lazyregexp"
)

// kind is what a line is to the search for contracts.
type kind int

const (
	blank   kind = iota // empty, a rule, a comment, the name of a section
	plain               // may be a contract, or go on with one
	heading             // gives context to those below it
	fence               // begins or ends a code block
	code                // is in one
)

// section is the part of a spec that a line stands in.
type section int

const (
	other section = iota
	contextSection
	contractsSection
)

// line is one line as it is read: without comments and odd spaces.
type line struct {
	kind
	section
	text  string // of a heading its name
	level int    // of a heading; what is drawn under one has -1 until it is read
}

// lexer walks over the lines of a spec once.
type lexer struct {
	lines   []line
	open    []place // the sections that we are in, by level
	mark    string  // that closes the code block we are in, "" outside
	opened  int     // line that began it, counted from 1
	comment int     // line that began the comment we are in, counted from 1, 0 outside

	hasContext, hasContracts bool
}

// place is a section that is open: it ends at the next heading of its level or
// a higher one.
type place struct {
	level int
	section
}

// lex sorts the lines.
func lex(text []string) *lexer {
	x := &lexer{lines: make([]line, len(text))}
	for i, raw := range text {
		l := &x.lines[i]
		l.text = x.readable(raw)
		if i > 0 { // the title is no contract
			x.sort(i, text)
		}
		if n := len(x.open); n > 0 {
			l.section = x.open[n-1].section
		}
		x.hasContext = x.hasContext || l.section == contextSection
		x.hasContracts = x.hasContracts || l.section == contractsSection
	}
	return x
}

// among says that contracts are looked for in a line: where there is a Contracts
// section nowhere else, and never in a Context.
func (x *lexer) among(l line) bool {
	return l.section == contractsSection || l.section == other && !x.hasContracts
}

var (
	closedComment = lazyregexp.New(`<!--.*?-->`)
	ruleLine      = lazyregexp.New(`^(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	underline     = lazyregexp.New(`^ {0,3}(?:={3,}|-{3,})[ \t]*$`)
	hashHeading   = lazyregexp.New(`^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*$`)
	fenceLine     = lazyregexp.New("^(?:```+[^`]*|~~~+.*)$")
	oddSpaces     = lazyregexp.New(`[\x{a0}\x{202f}\x{3000}\x{2000}-\x{200a}]`)
	noSpaces      = strings.NewReplacer("\u200b", "", "\ufeff", "")
)

// readable is a line as it is read. The person's text stays what it is.
func (x *lexer) readable(line string) string {
	line = oddSpaces().ReplaceAllString(noSpaces.Replace(line), " ")
	if x.mark != "" {
		return line
	}
	if x.comment > 0 {
		_, after, closed := strings.Cut(line, "-->")
		if !closed {
			return ""
		}
		x.comment, line = 0, after
	}
	if strings.Contains(line, "<!--") {
		line = closedComment().ReplaceAllString(line, "")
	}
	return line
}

// sort finds the kind of line i.
func (x *lexer) sort(i int, all []string) {
	l := &x.lines[i]
	text := strings.TrimSpace(l.text)
	if x.mark != "" {
		l.kind = code
		if strings.HasPrefix(text, x.mark) && strings.Trim(text, x.mark[:1]) == "" {
			l.kind, x.mark = fence, ""
		}
		return
	}
	if before, _, ok := strings.Cut(l.text, "<!--"); ok { // goes on below
		x.comment, l.text, text = i+1, before, strings.TrimSpace(before)
	}
	switch {
	case text == "", l.level < 0, ruleLine().MatchString(text):
		return
	case fenceLine().MatchString(text):
		l.kind, x.opened = fence, i+1
		x.mark = text[:len(text)-len(strings.TrimLeft(text, text[:1]))]
		return
	}
	l.kind = plain
	level, name := headingOf(l.text)
	if (level == 0 || level == nameLevel) && i+1 < len(all) && underline().MatchString(all[i+1]) && titles(l.text) {
		level, name = 2, text
		if strings.Contains(all[i+1], "=") {
			level = 1
		}
		x.lines[i+1].level = -1
	}
	if level == 0 {
		return
	}
	l.kind, l.text, l.level = heading, name, level
	if x.enter(level, name) {
		l.kind = blank
	}
}

// titles says that a line with another one drawn under it is a heading: a
// contract above a rule, an item and a table's head are none.
func titles(line string) bool {
	return !hasArrow(line) && itemMark(line) == "" && !strings.Contains(line, "|")
}

var (
	alone        = lazyregexp.New(`^(?:\*\*|__)?(Context|CONTEXT|Contracts?|CONTRACTS?)(?:\*\*|__)?[:：]?(?:\*\*|__)?$`)
	contractName = lazyregexp.New(`(?i)^[\W\d_]*(?:(?:[\w-]+\W+){0,3}?contracts\b|contract\W*$)`)
	contextName  = lazyregexp.New(`(?i)^[\W\d_]*context\b`)
)

// nameLevel is the level of a section's name without heading marks.
const nameLevel = 7

// headingOf recognises headings, and the names of the two sections on a line of
// their own, as people write them without heading marks.
func headingOf(line string) (level int, name string) {
	if m := hashHeading().FindStringSubmatch(line); m != nil {
		return len(m[1]), m[2]
	}
	if m := alone().FindStringSubmatch(strings.TrimSpace(line)); m != nil {
		return nameLevel, m[1]
	}
	return 0, ""
}

// enter follows the sections, and says whether a heading begins one.
func (x *lexer) enter(level int, name string) bool {
	for len(x.open) > 0 && x.open[len(x.open)-1].level >= level {
		x.open = x.open[:len(x.open)-1]
	}
	next := other
	switch {
	case contractName().MatchString(name) && !freeIn(name):
		next = contractsSection
	case contextName().MatchString(name):
		next = contextSection
	}
	if next == other || len(x.open) > 0 && x.open[len(x.open)-1].section == next {
		return false
	}
	x.open = append(x.open, place{level, next})
	return true
}

// An arrow of letters has white space on at least one side: "a->b" is somebody's
// code. The drawn ones have no other use, however tight they stand.
var arrow = lazyregexp.New(`(?:^|[\s\x{a0}])(\\?(?:[-–—]{1,3}|={1,2})\\?(?:>|&gt;))` +
	`|[^\s<>=–—-](\\?(?:-{1,3}|={1,2})\\?>)(?:[\s\x{a0}]|$)` +
	`|([→⇒⟶⟹➜➔➝➞➙➡⇨⭢↦]\x{fe0f}?|&[rR][aA]rr;)`)

// span is where an arrow stands in a text, in bytes.
type span struct{ start, end int }

// arrows lists them all.
func arrows(s string) (all []span) {
	if !strings.ContainsAny(s, ">;→⇒⟶⟹➜➔➝➞➙➡⇨⭢↦") { // quick, for most lines have none
		return nil
	}
	for _, m := range arrow().FindAllStringSubmatchIndex(s, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				all = append(all, span{m[g], m[g+1]})
			}
		}
	}
	return all
}

func hasArrow(s string) bool { return len(arrows(s)) > 0 }

func startsWithArrow(s string) bool {
	all := arrows(s)
	return len(all) > 0 && strings.TrimSpace(s[:all[0].start]) == ""
}

// freeArrow returns the arrow of a line that parts action and result: the first
// one in no inline code, no quotation and no bracket, for {"text": "a → b"} is
// data. open brackets are those of the lines before; it returns those after.
func freeArrow(s string, open int) (at span, found bool, still int) {
	w := enclosure{brackets: open}
	from := 0
	for _, a := range arrows(s) {
		w.walk(s[from:a.start])
		from = a.end
		if !found && w == (enclosure{}) {
			at, found = a, true
		}
	}
	w.walk(s[from:])
	return at, found, w.brackets
}

// enclosure says what encloses a place in a line.
type enclosure struct {
	code, quote bool
	brackets    int
}

func (w *enclosure) walk(s string) {
	for _, c := range s {
		switch c {
		case '`':
			w.code = !w.code
		case '"':
			w.quote = !w.quote
		case '“', '„', '«':
			w.quote = true
		case '”', '»':
			w.quote = false
		case '(', '[', '{':
			w.brackets++
		case ')', ']', '}':
			w.brackets = max(0, w.brackets-1) // one alone is somebody's list mark
		}
	}
}

// tidy takes off the emphasis and the code marks around a text; what stands
// inside it stays.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for _, mark := range []string{"**", "__", "`", "*", `"`} {
		inner, open := strings.CutPrefix(s, mark)
		inner, shut := strings.CutSuffix(inner, mark)
		n := strings.Count(s, mark)
		switch {
		case open && shut && n == 2:
			s = strings.TrimSpace(inner)
		case n%2 == 1 && open != shut && mark != "*" && mark != `"`: // the mark's partner is on the arrow's other side
			s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(s, mark), mark))
		}
	}
	return s
}
