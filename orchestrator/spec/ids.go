package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/hostfs"
)

// IDFile is the file beside the specs that remembers which contract has which
// id. It is text with one line a contract, so that people can read and merge it.
const IDFile = "contract-ids.txt"

// maxIDBytes is the largest such file that is read.
const maxIDBytes = 8 << 20

const idsHeader = `# Which contract has which id, kept by abl: commit this file with the specs.
# "=" is in its spec, "-" was there once: its id is never given to another one.
`

// entry is one line of it.
type entry struct {
	phase, number int
	gone          bool // no spec has it any more
	text          string
	line          int
}

func (e entry) id() string { return idOf(e.phase, e.number) }

// book is all of them.
type book struct {
	entries []entry
	notes   []Problem
}

var (
	idLine    = regexp.MustCompile(`^P([1-9]\d{0,3})\.C([1-9]\d{0,5}) ([=-]) (\S.*)$`)
	mergeMark = regexp.MustCompile(`^(?:<{7}|={7}|>{7}|\|{7})(?: .*)?$`)
)

// parseIDs reads the file. Where two people gave ids at the same time, both
// lines of a merge are read, its marks too, and the first line keeps the id.
func parseIDs(data []byte) (book, error) {
	var b book
	seen := map[string]string{}
	merged := false
	for i, line := range strings.Split(normalise(data), "\n") {
		line = strings.TrimRight(line, " \t")
		if mergeMark.MatchString(line) {
			merged = true
		}
		if line == "" || strings.HasPrefix(line, "#") || mergeMark.MatchString(line) {
			continue
		}
		m := idLine.FindStringSubmatch(line)
		if m == nil {
			return book{}, &damaged{i + 1, fmt.Sprintf("%s is no line of it, such as \"P1.C3 = GET / → 200\"", quote(line))}
		}
		phase, _ := strconv.Atoi(m[1])
		number, _ := strconv.Atoi(m[2])
		e := entry{phase, number, m[3] == "-", m[4], i + 1}
		if first, twice := seen[e.id()]; twice {
			if first != e.text {
				b.note(e.line, fmt.Sprintf("%s was given twice, which happens when two people's changes are merged; it stays with the first, %s", e.id(), quote(first)))
			}
			continue
		}
		seen[e.id()] = e.text
		b.entries = append(b.entries, e)
	}
	if merged {
		b.note(0, "it holds the marks of a merge; both sides were read")
	}
	return b, nil
}

func (b *book) note(line int, text string) {
	b.notes = append(b.notes, Problem{Line: line, Code: "ids-merged", Text: text, Hint: "look at the ids with abl spec list; abl writes the file anew"})
}

// damaged says where the file is not what abl writes.
type damaged struct {
	line int
	what string
}

func (d *damaged) Error() string { return d.what }

// render is the file's content.
func (b book) render() []byte {
	var out strings.Builder
	out.WriteString(idsHeader)
	for _, e := range b.entries {
		mark := "="
		if e.gone {
			mark = "-"
		}
		fmt.Fprintf(&out, "%s %s %s\n", e.id(), mark, e.text)
	}
	return []byte(out.String())
}

// of are the entries of one phase.
func (b book) of(phase int) []entry {
	var all []entry
	for _, e := range b.entries {
		if e.phase == phase {
			all = append(all, e)
		}
	}
	return all
}

// put replaces the entries of one phase, and keeps all in order.
func (b *book) put(phase int, entries []entry) {
	b.entries = slices.DeleteFunc(b.entries, func(e entry) bool { return e.phase == phase })
	b.entries = append(b.entries, entries...)
	slices.SortFunc(b.entries, func(a, b entry) int {
		if a.phase != b.phase {
			return a.phase - b.phase
		}
		return a.number - b.number
	})
}

// identify gives the contracts the ids that they had. A file that cannot be read
// stops every phase: guessed ids would lay one contract's tests to another's charge.
func (s *Set) identify(begun Begun) {
	data, err := hostfs.Read(s.dir, IDFile, maxIDBytes)
	if err == nil {
		s.book, err = parseIDs(data)
	} else if errors.Is(err, hostfs.ErrAbsent) {
		err = nil
	}
	if err != nil {
		s.report(IDFile, 0, "ids", true, err.Error(), "restore it from git; or delete it, and the contracts get new ids in the order of the text")
		var d *damaged
		if errors.As(err, &d) {
			s.problems[len(s.problems)-1].Line = d.line
		}
		return
	}
	s.stored, s.sound = string(data), true
	for _, p := range s.book.notes {
		p.File = s.path(IDFile)
		s.problems = append(s.problems, p)
	}
	for n, spec := range s.specs {
		known := s.book.of(n)
		if replaced(spec.Contracts, known) && !begun(n) {
			known = nil
		}
		s.book.put(n, assign(n, spec.Contracts, known))
	}
	for i, p := range s.problems {
		s.problems[i].Contract = s.contractAt(p)
	}
}

// contractAt is the id of the contract that begins where a problem is.
func (s *Set) contractAt(p Problem) string {
	for _, c := range s.specs[p.Phase].Contracts {
		if c.Line == p.Line && p.Contract == "" {
			return c.ID
		}
	}
	return p.Contract
}
