package verdict

import (
	"regexp"
	"strings"
)

// strainer takes out of texts what may not pass.
type strainer struct {
	*Crossing
	said map[string]bool // what was looked up in the specs
	told map[string]bool // kinds that were found in this field

	lines, parts []pattern // of those, what can be found in this field
}

// maxSaid is how many different words are looked up in the specs for one set of
// entries. Beyond it nothing passes for their words: honest entries need few.
const maxSaid = 1000

// strain takes out of a text what may not pass.
func (s *strainer) strain(text string) string {
	s.lines, s.parts = nil, nil
	s.choose(&s.lines, lineKinds(), text)
	s.choose(&s.parts, frames(), text)
	s.choose(&s.parts, places(), text)
	for _, n := range s.names {
		if strings.Contains(text, n.need) {
			s.parts = append(s.parts, n)
		}
	}
	found := map[string]bool{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = s.line(line, found)
	}
	text = strings.Join(dropSources(lines), "\n")
	for _, kind := range kinds {
		if found[kind] {
			s.told[kind] = true
			text = collapses()[kind].ReplaceAllLiteralString(text, LeftOut(kind))
		}
	}
	return text
}

func (s *strainer) choose(into *[]pattern, from []pattern, text string) {
	for _, p := range from {
		if p.may(text) {
			*into = append(*into, p)
		}
	}
}

func (s *strainer) line(line string, found map[string]bool) string {
	for _, p := range s.lines {
		if p.may(line) && p.at.MatchString(line) && !s.says(line) {
			found[p.kind] = true
			return LeftOut(p.kind)
		}
	}
	for _, p := range s.parts {
		if p.may(line) {
			line = s.replace(line, p, found)
		}
	}
	return line
}

// replace takes out of a line what a pattern finds and the specs do not say.
func (s *strainer) replace(line string, p pattern, found map[string]bool) string {
	var b strings.Builder
	at := 0
	for _, m := range p.at.FindAllStringSubmatchIndex(line, -1) {
		from, to := m[0], m[1]
		if len(m) > 2 {
			from, to = m[2], m[3]
		}
		what := line[from:to]
		if s.says(what) {
			continue
		}
		found[p.kind] = true
		b.WriteString(line[at:from])
		b.WriteString(what[:indent(what)])
		b.WriteString(LeftOut(p.kind))
		at = to
	}
	return b.String() + line[at:]
}

// says reports words that stand in the specs.
func (s *strainer) says(words string) bool {
	words = strings.TrimSpace(words)
	is, known := s.said[words]
	if !known && len(s.said) < maxSaid {
		is = strings.Contains(s.specs, words)
		s.said[words] = is
	}
	return is
}

var pointer = regexp.MustCompile(`^\s*[\^~]+\s*$`)

// dropSources takes out the lines of source that programs show below the places
// that they name: those below a stack trace that stand deeper, and one with a
// pointer (^) below it.
func dropSources(lines []string) []string {
	var kept []string
	trace, depth := false, 0
	for _, line := range lines {
		n := len(kept)
		switch {
		case n > 0 && pointer.MatchString(line) && (isPlace(kept[n-1]) || n > 1 && isPlace(kept[n-2])):
			if !isPlace(kept[n-1]) {
				kept = kept[:n-1]
			}
			continue
		case trace && strings.TrimSpace(line) != "" && indent(line) > depth:
			continue
		case strings.TrimSpace(line) == LeftOut(stackTrace):
			if !trace {
				depth = indent(line)
			}
			trace, line = true, LeftOut(stackTrace)
		default:
			trace = false
		}
		kept = append(kept, line)
	}
	return kept
}

// isPlace reports a line that was nothing but a place in the code.
func isPlace(line string) bool {
	switch strings.TrimSpace(line) {
	case LeftOut(stackTrace), LeftOut(codePlace), LeftOut(ownPath):
		return true
	}
	return false
}
