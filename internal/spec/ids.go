package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/internal/hostfs"
	"abl/internal/wording"
)

// IDFile is the name of the file that assigns ids to contracts, in the directory of the specs. It
// is text with one line per contract, so that users can read and merge it.
const IDFile = "contract-ids.txt"

// maxIDBytes is the maximum size of IDFile.
const maxIDBytes = 8 << 20

const idsHeader = `# Which contract has which id, kept by abl: commit this file with the specs.
# "=" is in its spec, "-" was there once: its id is never given to another one.
`

// entry is one line of IDFile.
type entry struct {
	phase, number int
	gone          bool // no spec has the contract anymore
	text          string
}

var (
	idLine    = regexp.MustCompile(`^P([1-9]\d{0,3})\.C([1-9]\d{0,5}) ([=-]) (\S.*)$`)
	mergeMark = regexp.MustCompile(`^(?:<{7}|={7}|>{7}|\|{7})(?: .*)?$`)
)

// parseIDs parses IDFile. After an unresolved merge it reads the lines of both sides, and the first
// line with an id keeps it.
func parseIDs(data []byte) (entries []entry, problems []Problem) {
	seen := map[string]string{}
	note := func(line int, text string) {
		problems = append(problems, Problem{
			Line: line,
			Code: "ids-merged",
			Text: text,
			Hint: "look at the ids with abl spec list; abl rewrites the file when a phase runs",
		})
	}
	merged := false
	for i, line := range strings.Split(wording.Unix(string(data)), "\n") {
		line = strings.TrimRight(line, " \t")
		mark := mergeMark.MatchString(line)
		merged = merged || mark
		if line == "" || strings.HasPrefix(line, "#") || mark {
			continue
		}
		m := idLine.FindStringSubmatch(line)
		if m == nil {
			return nil, []Problem{damaged(i+1, fmt.Sprintf(
				"%s is not a valid line, want one such as \"P1.C3 = GET / → 200\"", quote(line)))}
		}
		phase, _ := strconv.Atoi(m[1])
		number, _ := strconv.Atoi(m[2])
		id, text := idOf(phase, number), m[4]
		switch first, twice := seen[id]; {
		case !twice:
			seen[id] = text
			entries = append(entries, entry{phase, number, m[3] == "-", text})
		case first != text:
			note(i+1, fmt.Sprintf("%s is given twice, which a merge can cause; the first line keeps it: %s",
				id, quote(first)))
		}
	}
	if merged {
		note(0, "the file contains merge conflict markers; both sides were read")
	}
	return entries, problems
}

// damaged returns a problem that stops every phase: with guessed ids, abl would assign tests to the
// wrong contracts.
func damaged(line int, text string) Problem {
	return Problem{
		Line:  line,
		Code:  "ids",
		Text:  text,
		Fatal: true,
		Hint:  "restore the file from git, or delete it: the contracts then get new ids in the order of the text",
	}
}

// renderIDs returns the content of IDFile.
func renderIDs(entries []entry) string {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.number, b.number))
	})
	var out strings.Builder
	out.WriteString(idsHeader)
	for _, e := range entries {
		mark := map[bool]string{false: "=", true: "-"}[e.gone]
		fmt.Fprintf(&out, "%s %s %s\n", idOf(e.phase, e.number), mark, e.text)
	}
	return out.String()
}

// identify sets the ids of all contracts.
func (s *Set) identify() {
	data, err := hostfs.Read(s.dir, IDFile, maxIDBytes)
	known, problems := parseIDs(data)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		problems = []Problem{damaged(0, err.Error())}
	}
	for _, p := range problems {
		p.File = s.path(IDFile)
		s.problems = append(s.problems, p)
		if p.Fatal { // then it is the only problem
			return
		}
	}
	s.idText, s.known = string(data), known
	s.assigned, s.lost = map[int][]entry{}, map[int]bool{}
	for number, spec := range s.specs {
		now, lost := assign(number, spec.Contracts, slices.DeleteFunc(slices.Clone(known),
			func(e entry) bool { return e.phase != number }))
		s.assigned[number], s.lost[number] = now, len(lost) > 0
		if len(lost) > 0 {
			s.problems = append(s.problems, Problem{
				File:  spec.File,
				Phase: number,
				Code:  "lost",
				Text: fmt.Sprintf("phase %d lost %d of its contracts; the first one is %s: %s", number,
					len(lost), idOf(number, lost[0].number), quote(lost[0].text)),
				Hint: "if they should stay, write each one again at the end of the spec, as a list item with an arrow",
			})
		}
	}
	for i, p := range s.problems {
		for _, c := range s.specs[p.Phase].Contracts {
			if c.Line == p.Line && p.Contract == "" {
				s.problems[i].Contract = c.ID
			}
		}
	}
}

// writtenID matches an id that the user wrote before a contract: P1.C3 or C3.
var writtenID = regexp.MustCompile("^([\\[(*_`]{0,4})(?:[Pp](\\d{1,4})[.\\-–_ ]?)?[Cc](\\d{1,4})[\\])*_`]{0,4}[ " +
	"\\t]*([:.)–—-]?)[*_]{0,2}[ \\t]*")

// cutWrittenID splits an id that the user wrote from an action. phase and number are 0 if missing.
// "C3" without P needs a mark around or after it, because it may be a word of the action.
func cutWrittenID(action string) (phase, number int, rest string) {
	m := writtenID.FindStringSubmatch(action)
	if m == nil || m[1]+m[2]+m[4] == "" || len(m[0]) == len(action) {
		return 0, 0, action
	}
	phase, _ = strconv.Atoi(m[2]) // "" is 0
	number, _ = strconv.Atoi(m[3])
	return phase, number, action[len(m[0]):]
}

// setWrittenID sets the id that the user wrote before the contract.
func (r *reader) setWrittenID(c *Contract, phase, number int) {
	id := idOf(r.Number, number)
	switch {
	case phase != 0 && phase != r.Number:
		r.warn(c.Line, "id-foreign", fmt.Sprintf("the id %s is not one of phase %d", idOf(phase, number), r.Number),
			"leave the ids to abl, or write this phase's number")
	case number == 0:
	case slices.ContainsFunc(r.Contracts, func(c Contract) bool { return c.ID == id }): // the other ids are still empty
		r.warn(c.Line, "id-twice", fmt.Sprintf("the id C%d is written twice", number),
			"give one of the two contracts another number")
	default:
		c.ID, c.Written = id, true
	}
}

func idOf(phase, number int) string { return fmt.Sprintf("P%d.C%d", phase, number) }

// Missing returns the contracts of old that s does not have, compared by the id that the user
// wrote, else by their text.
func (s Spec) Missing(old Spec) []Contract {
	there := map[string]bool{}
	for _, c := range s.Contracts {
		there[idKey(c)], there[c.ID] = true, c.Written
	}
	return slices.DeleteFunc(slices.Clone(old.Contracts), func(c Contract) bool {
		return there[idKey(c)] || c.Written && there[c.ID]
	})
}

// assign sets the ids of a phase's contracts. It returns all entries for IDFile, and the entries
// of contracts that are lost. A contract gets the first of these ids: the one that the user
// wrote, that of the same text, that of the same action with another result, that of the same
// text which was removed earlier, or a new one.
func assign(phase int, contracts []Contract, known []entry) (all, lost []entry) {
	numbers := make([]int, len(contracts)) // 0 means not assigned yet
	for i, c := range contracts {
		if c.Written {
			fmt.Sscanf(c.ID, "P%d.C%d", &phase, &numbers[i])
		}
	}
	free := func(e entry) bool { return !slices.Contains(numbers, e.number) }
	claim := func(gone bool, ofContract func(Contract) string, ofEntry func(string) string) {
		by := map[string][]int{}
		for _, e := range known {
			if e.gone == gone && free(e) {
				by[ofEntry(e.text)] = append(by[ofEntry(e.text)], e.number)
			}
		}
		for i, c := range contracts {
			if same := by[ofContract(c)]; numbers[i] == 0 && len(same) > 0 {
				numbers[i], by[ofContract(c)] = same[0], same[1:]
			}
		}
	}
	itself := func(text string) string { return text }
	claim(false, idKey, itself)
	claim(false, func(c Contract) string { // older versions of abl wrote no headings
		c.Under = ""
		return idKey(c)
	}, itself)
	claim(false, func(c Contract) string { return actionOf(idKey(c)) }, actionOf)
	claim(true, idKey, itself)

	highest := 0
	for _, e := range known {
		highest = max(highest, e.number)
		if free(e) {
			all = append(all, entry{phase, e.number, true, e.text})
			if !e.gone {
				lost = append(lost, e)
			}
		}
	}
	if len(known) > 0 {
		highest = max(highest, slices.Max(append(numbers, 0)))
	}
	for i := range contracts {
		for numbers[i] == 0 {
			if highest++; !slices.Contains(numbers, highest) {
				numbers[i] = highest
			}
		}
		contracts[i].ID = idOf(phase, numbers[i])
		all = append(all, entry{phase: phase, number: numbers[i], text: idKey(contracts[i])})
	}
	return all, lost
}

// maxKey is the maximum length of a contract's text in IDFile.
const maxKey = 300

// idKey returns the text of a contract for IDFile, on one line. It cuts a long text and appends a
// hash.
func idKey(c Contract) string {
	c.Absence, c.Step = false, 0
	text := strings.Join(strings.FieldsFunc(c.Says(), func(r rune) bool {
		return unicode.IsSpace(r) || r < ' ' || r == 0x7f
	}), " ")
	if runes := []rune(text); len(runes) > maxKey {
		return strings.TrimSpace(string(runes[:maxKey])) + " … " + sum(text)[:12]
	}
	return text
}

// actionOf returns the part of a key before the result.
func actionOf(key string) string { return strings.SplitN(key, " → ", 2)[0] }
