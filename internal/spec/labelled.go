package spec

import (
	"cmp"
	"slices"
	"strings"
)

// labelled turns consecutive labelled lines into contracts.
type labelled struct {
	*reader
	above    []string // headings and items above, as written
	nodes    []*node  // the nodes read so far
	parts    [resultRole]phrase
	outcomes []*outcome
	last     *phrase // the phrase that the next line may continue
	wrongs   []Problem

	under   []string // the texts above the next result
	action  string
	changed bool // parts changed after under and action were set
}

// outcome is a result with the texts above it and its action.
type outcome struct {
	phrase
	under  []string
	action string
}

// label replaces the labelled lines below a node with their contracts. Other lines stay.
func (r *reader) label(n *node, above []string) {
	b, kids := &labelled{reader: r, above: above}, n.kids
	for n.kids = nil; len(kids) > 0; kids = kids[1:] {
		k, first := kids[0], kids[0].pieces[0].text
		if b.begins(k) {
			named := k.kind == block || labelOf(first).role == noRole // its first line is a heading
			if named {
				b.end(n)
			}
			if b.read(k); named && k.kind != words {
				b.end(n)
			}
			continue
		}
		text := strings.Join(texts(k.pieces), " ")
		below := append(slices.Clone(above), strings.TrimRight(text[len(itemMark(text)):], ":：. "))
		if k.kind == title && len(k.under) == 0 {
			below = nil
		}
		if !k.arrow { // the lines below a contract are part of it
			r.label(k, below)
		}
		plain := r.mayHaveContracts(k) && (k.kind <= item || k.kind == block) && !k.holds()
		continues := plain && len(b.nodes) > 0 && (k.kind == block || b.last.open() || labelForm.MatchString(first) &&
			!k.leads())
		if !continues {
			b.end(n)
		}
		if continues || plain && k.leads() && len(k.kids) == 0 {
			b.read(k)
		} else {
			n.kids = append(n.kids, k)
		}
	}
	b.end(n)
}

// begins reports whether a node has a labelled line and no contract.
func (b *labelled) begins(n *node) bool {
	return b.mayHaveContracts(n) && n.kind != title && n.kind != tableRow && !n.holds() &&
		slices.ContainsFunc(n.pieces, func(p piece) bool {
			is := labelOf(p.text).role
			return (!p.code || n.plain) && (is < moreRole || is == moreRole && len(b.nodes) > 0)
		})
}

func (b *labelled) read(n *node) {
	if len(b.nodes) == 0 {
		b.last = &b.parts[titleRole]
	}
	code := !n.plain || !b.begins(n)
	b.nodes = append(b.nodes, n)
	b.lines(n, code)
}

// lines reads the lines of a node and of the nodes below it. If code is false, it reads the lines of a code
// block as labelled text.
func (b *labelled) lines(n *node, code bool) {
	header := false
	var pieces []piece
	for _, p := range n.pieces {
		pieces = append(pieces, criteria(p)...)
	}
	for i, p := range pieces {
		if line := pieces[max(0, i-1):min(i+2, len(pieces))]; p.code && code && !strings.Contains(p.text, "`") &&
			!slices.ContainsFunc(line, func(q piece) bool { return q.code && q.line != p.line }) {
			p.text = "`" + p.text + "`" // a block with one line
		}
		was := header
		header = p.code && headerLine.MatchString(p.text)
		switch is := labelOf(p.text); {
		case p.code && code && (header || was):
			b.last.add(", ", p.text)
		case p.code && code:
			b.last.add(" ", p.text)
		case p.code && strings.IndexAny(p.text, "#@") == 0: // a comment or a tag
		case is.role == moreRole, is.sep != "" && is.sep == b.sep():
			b.last.add(cmp.Or(is.sep, b.sep()), is.text)
		case is.role < resultRole:
			b.part(p, is.role).add(", ", is.text)
		case is.role == resultRole:
			b.result(p, is)
		case !labelForm.MatchString(p.text), b.last == &b.parts[titleRole] && b.last.Len() == 0 && strings.ContainsAny(p.text[len(p.text)-1:], ":*"):
			b.last.add(" ", tidy(p.text))
		case p.column > b.last.column && !p.code, b.last.open() && b.last != &b.parts[titleRole] && p.text[0] != '*':
			b.last.add(b.sep(), p.text)
		default:
			b.wrong(p, " has a label that abl does not read", "indent it if it belongs to the line above it, "+
				"move it to the Context, or use one of "+actionLabels+", "+resultLabels)
		}
	}
	sep := ": "
	for _, k := range n.kids {
		switch {
		case k.kind == block, labelOf(k.pieces[0].text).role != noRole:
			b.lines(k, true)
		case statusCode.MatchString(k.text()) && b.sep() == "; " && b.last.Len() > 0:
			b.wrong(k.pieces[0], " is another result", "write one labelled line for each result, such as Fail (REASON): 404")
		default:
			b.last.add(sep, k.fullText())
			sep = "; "
		}
	}
}

// sep returns the separator before a line that continues the last phrase.
func (b *labelled) sep() string {
	if n := len(b.outcomes); n > 0 && b.last == &b.outcomes[n-1].phrase {
		return "; "
	}
	return ", "
}

// part returns the phrase with a role. After a result it begins a new one.
func (b *labelled) part(p piece, of role) *phrase {
	from, given := of, &b.parts[givenRole]
	switch flat := given.Len() > 0 && p.column <= given.column; {
	case of != actionRole || !b.parts[of].used || !flat:
	case p.column < b.outcomes[len(b.outcomes)-1].column: // the line above has an action and its result
		from = givenRole
	default:
		b.wrong(p, " follows a result: it may belong to the action above or be a separate action",
			"if it is separate, write Given or Scenario: above it; if not, write contracts with arrows, in steps")
	}
	b.unused(from, of > titleRole)
	b.changed = true
	b.last = &b.parts[of]
	if b.last.Len() == 0 {
		b.last.line, b.last.column = p.line, p.column
	}
	return b.last
}

// unused reports phrases without a result, from the role from on, and clears them. If keep is set,
// it reports none and clears only used phrases.
func (b *labelled) unused(from role, keep bool) {
	for i := from; i < resultRole; i++ {
		p := b.parts[i]
		if !keep && i >= titleRole && p.Len() > 0 && !p.used {
			b.wrong(piece{line: p.line, text: p.String()}, " has no result", "write a line below it such as Then or Success: 200")
		}
		if !keep || p.used {
			b.parts[i] = phrase{}
		}
	}
}

// texts returns the phrases with the roles from to to.
func (b *labelled) texts(from, to role) (all []string) {
	for _, p := range b.parts[from : to+1] {
		if p.Len() > 0 {
			all = append(all, p.String())
		}
	}
	return all
}

// result reads a line with a result. Its action is above it, or is the reason for the result.
func (b *labelled) result(p piece, is label) {
	if len(b.outcomes) > MaxContracts { // read reports this error
		return
	}
	if b.changed || len(b.outcomes) == 0 {
		b.under, b.action, b.changed = b.texts(featureRole, givenRole), strings.Join(b.texts(actionRole, inputRole), ", "), false
	}
	o := &outcome{phrase{line: p.line, column: p.column}, slices.Clone(b.under), b.action}
	o.add("", is.text)
	switch asked := slices.ContainsFunc(append(b.texts(titleRole, titleRole), b.above...), asks); {
	case len(o.under)+len(b.above) == 0 && b.parts[actionRole].Len() == 0:
		o.action = ""
	case is.reason != "":
		o.under, o.action = slices.DeleteFunc(append(o.under, o.action), func(s string) bool { return s == "" }), is.reason
	case o.action != "":
	case b.parts[givenRole].Len() > 0, len(o.under) > 0 && asked:
		o.under, o.action = o.under[:len(o.under)-1], o.under[len(o.under)-1]
	case asked:
		o.action = b.above[len(b.above)-1]
	}
	if len(b.outcomes)*len(o.action) > MaxBytes {
		b.wrong(p, " has a very long action, which is in many contracts", "write a shorter one")
		return
	}
	if o.action == "" {
		b.wrong(p, " has no action", "write it below a heading such as POST /login, or below a line such as Request: POST /login")
		return
	}
	for i := range b.parts {
		b.parts[i].used = b.parts[i].Len() > 0
	}
	b.outcomes, b.last = append(b.outcomes, o), &o.phrase
}

// asks reports whether a text is a request or a command.
func asks(text string) bool {
	text = strings.ReplaceAll(text, "**", "")
	return request.MatchString(strings.ReplaceAll(text, "`", "")) || command.MatchString(text)
}

// wrong records an error. The following lines must not continue the line with the error.
func (b *labelled) wrong(p piece, text, hint string) {
	b.wrongs = append(b.wrongs, Problem{
		Line:  p.line + 1,
		Code:  "label",
		Text:  quote(p.text) + text,
		Hint:  hint,
		Error: true,
	})
	b.last = &phrase{column: p.column}
}

// end replaces the lines that were read with their contracts.
func (b *labelled) end(n *node) {
	b.unused(featureRole, false)
	if len(b.outcomes) == 0 {
		n.kids, b.wrongs = append(n.kids, b.nodes...), nil
	}
	for _, o := range b.outcomes {
		at := func(said string, kids ...*node) *node {
			return &node{
				line:    o.line,
				last:    o.line,
				kind:    item,
				section: n.section,
				said:    []string{said},
				kids:    kids,
			}
		}
		text := o.String()
		k := at(o.action + " → " + text)
		k.arrow, k.action, k.result = true, []string{o.action}, []string{text}
		for _, text := range slices.Backward(o.under) {
			k = at(text, k)
		}
		n.kids = append(n.kids, k)
	}
	for _, p := range b.wrongs {
		b.report(p)
	}
	*b = labelled{reader: b.reader, above: b.above}
}
