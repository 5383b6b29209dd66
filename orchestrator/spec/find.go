package spec

import "strings"

// contracts finds them in the order of the text.
func (r *reader) contracts(lines []string, m marks) []Contract {
	f := &finder{reader: r, lines: lines, marks: m, units: gather(m), cuts: map[int]int{}}
	for _, u := range f.units {
		f.cuts[u.first] = u.cut
	}
	for i := 0; i < len(f.units); i++ {
		i = f.unit(i)
	}
	f.finish()
	f.number()
	return f.found
}

// finder walks over the units.
type finder struct {
	*reader
	marks
	lines   []string
	units   []*unit
	cuts    map[int]int // runes before a unit's text, by its first line
	heads   []above     // headings that we are below, within the Contracts section
	parents []above     // texts that we are below: items of outer lists, "…:" before a list
	said    string      // the last prose, by which two equal lines may differ
	story   story       // the labelled lines in the making
	found   []Contract
	drafts  []draft // of each of these
	full    bool    // MaxContracts was reached
}

// unit reads the unit at i and returns the last one taken.
func (f *finder) unit(i int) int {
	u := f.units[i]
	if u.head > 0 && u.label.part == 0 {
		f.heading(u)
		return i
	}
	f.leave(u.indent)
	switch {
	case u.table != nil:
		f.rows(u)
	case u.label.part != 0 && f.tells(u):
		return f.labelled(i)
	case u.arrow:
		f.story = f.story.next("")
		return f.arrowed(i)
	default:
		f.plain(i)
	}
	return i
}

func (f *finder) heading(u *unit) {
	f.story, f.said, f.parents = story{}, "", nil
	for n := len(f.heads); n > 0 && f.heads[n-1].level >= u.head; n-- {
		f.heads = f.heads[:n-1]
	}
	name := u.flat()
	if action, result, ok := split(name); ok {
		f.add(u.first, u.last, action, result)
		return
	}
	f.heads = append(f.heads, above{level: u.head, text: title(name), loose: true})
	f.story.title = title(name)
}

// plain takes a text without arrow and label: it may be the title of what follows.
func (f *finder) plain(i int) {
	u := f.units[i]
	text := title(u.flat())
	if !u.item {
		f.leave(u.indent - 1) // it takes the place of the last lead
	}
	f.story = f.story.next(text)
	if !u.item {
		f.said = text
	}
	switch {
	case f.hasKids(i):
		f.parents = append(f.parents, above{level: u.indent, text: text})
	case !u.item && strings.HasSuffix(u.tail, ":"):
		f.parents = append(f.parents, above{level: u.indent - 1, text: text, loose: true})
	case f.hasContracts && text != "" && f.meant(u) && !f.followed(i):
		f.warn(u.first+1, "no-arrow", quote(text)+" has no arrow, so it is no contract", "write it as ACTION → EXPECTED RESULT, or move it to the Context")
	}
}

// meant says that a text without an arrow looks as if it was to be a contract.
func (f *finder) meant(u *unit) bool {
	text := u.texts[0]
	return u.item || u.code && !remark(text) || strings.HasPrefix(text, "|")
}

// hasKids says that the next unit is indented deeper.
func (f *finder) hasKids(i int) bool {
	return i+1 < len(f.units) && f.units[i+1].indent > f.units[i].indent && f.units[i+1].head == 0
}

// followed says that the next unit is a labelled line, so that this one is its title.
func (f *finder) followed(i int) bool {
	return i+1 < len(f.units) && f.units[i+1].label.part != 0
}

// remark is a comment in a code block.
func remark(text string) bool {
	return strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//") || strings.HasPrefix(text, "--")
}

func (f *finder) rows(u *unit) {
	l := layoutOf(u.table.head)
	defer func(said string) { f.said = said }(f.said)
	for n, row := range u.table.rows {
		at := u.table.first + n
		if l.alone(row) {
			if l.named() && !strings.Contains(strings.Join(row, ""), "**") {
				f.warn(at+1, "no-result", quote(strings.TrimSpace(f.lines[at]))+" has no result", "write it into its column; a title within the table is written in **bold**")
			}
			continue
		}
		for _, p := range l.read(row, f.hasContracts) {
			if l.id >= 0 && l.id < len(row) && writtenID.MatchString(tidy(row[l.id])+":") {
				p.action = tidy(row[l.id]) + ": " + p.action
			}
			f.said = l.rest(row)
			f.add(at, at, p.action, p.result)
		}
	}
}
