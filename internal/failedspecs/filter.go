package failedspecs

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"abl/internal/spec"
)

// Filter limits the entries that reach the Builder to the language of the specs. It replaces the
// SPEC with the text of the contract. In INPUT and OBSERVED it replaces code, stack traces, test
// output, names of tests and paths of workspaces with a mark. Text of the specs always passes.
type Filter struct {
	contracts Contracts
	specs     string  // text of all specs
	names     []named // of the Verifier's files and tests
}

// NewFilter returns the filter for a Builder with these specs. names are the names of the
// Verifier's files and tests (see Names).
func NewFilter(specs []spec.Spec, names []string) *Filter {
	c := &Filter{contracts: In(specs)}
	for _, s := range specs {
		c.specs += s.Text + "\n"
	}
	for _, n := range names {
		if expr := nameOf(n); expr != "" {
			c.names = append(c.names, named{n, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })})
		}
	}
	return c
}

// named matches a name. There may be thousands, most of which no text contains, so its expression is
// compiled when it is first needed.
type named struct {
	name string
	expr func() *regexp.Regexp
}

// Minimum length in bytes of a name, and of a name with several words. Shorter ones are ordinary
// words.
const shortestName, shortestTitle = 5, 12

var plainName = regexp.MustCompile(`^[\w./@-]+$`)

// nameOf returns an expression for a name as a separate word, "" for an ordinary word. In quotes,
// after an equals sign, in an address and in a path a name is data.
func nameOf(name string) string {
	before := `(?:^|[^\w"'=@/.-])`
	switch {
	case strings.Contains(name, " ") && len(name) >= shortestTitle:
		return `(?:^|\W)(` + regexp.QuoteMeta(name) + `)`
	case len(name) < shortestName || !plainName.MatchString(name):
		return ""
	case strings.Contains(name, "/"):
		before = `(?:^|[^\w=@/.-])`
	case !strings.ContainsAny(name, "._-0123456789"):
		return "" // an ordinary word
	}
	return before + `((?:\./)?` + regexp.QuoteMeta(name) + `)\b`
}

var (
	sourceFile = regexp.MustCompile(`\.` + sources + `$`)
	testTitles = regexp.MustCompile("(?m)\\b(?:it|test|describe|@test)\\b\\s*\\(?\\s*(?:'([^'\\n]{5,200})'|\"([^\"\\n]{5,200})\"|`([^`\\n]{5,200})`)" +
		`|\b(?:def|func|fn|function)\s+((?:test_|Test)\w+)`)
)

// MaxTest is the maximum number of bytes of a test file that are searched for names.
const MaxTest = 1 << 20

// Names returns the names of the Verifier's files and tests: the path of each file, and for
// programs also the base name and the names of the tests in it. read returns the content of a file,
// nil if it cannot be read.
func Names(paths []string, read func(path string) []byte) (names []string) {
	for _, file := range paths {
		names = append(names, file)
		if !sourceFile.MatchString(file) {
			continue
		}
		base := path.Base(file)
		names = append(names, base, strings.TrimSuffix(base, path.Ext(base)))
		for _, m := range testTitles.FindAllSubmatch(read(file), -1) {
			names = append(names, string(bytes.Join(m[1:], nil))) // exactly one group matched
		}
	}
	return names
}

// Pass returns the filtered entries and lists what it removed. It drops duplicates. It is
// idempotent.
func (c *Filter) Pass(entries []Entry) (passed []Entry, left []Problem) {
	seen := map[Entry]bool{}
	run := &filtering{Filter: c}
	for _, e := range entries {
		id := cmp.Or(e.Contract, c.contracts.Find(e.Spec))
		if says, known := c.contracts.Says(id); known {
			e.Contract, e.Spec = id, says
		} else {
			e.Spec = run.field(specField, e.Line, e.Spec)
		}
		e.Input = run.field(inputField, e.Line, e.Input)
		e.Observed = run.field(observedField, e.Line, e.Observed)
		e = Sanitize(e)
		key := e
		key.Line = 0
		if !seen[key] {
			seen[key] = true
			passed = append(passed, e)
		}
	}
	return passed, run.left
}

// filtering is one run of a filter over a set of entries.
type filtering struct {
	*Filter
	asked  int             // number of lookups in the specs
	found  map[string]bool // kinds of text removed from this field
	nested int             // number of decodings of this text
	left   []Problem
}

// field returns the filtered text of a field in normal form.
func (s *filtering) field(f field, line int, text string) string {
	s.found = map[string]bool{}
	stable := false
	for i := 0; i < 8 && !stable; i++ { // a removal may join text that has to be removed, too
		out := filled(s.filter(text))
		stable, text = out == text, out
	}
	for _, kind := range kinds {
		if s.found[kind] {
			s.left = append(s.left, Problem{Line: line, Text: fmt.Sprintf("%s contains %s, which does not reach the Builder", f, kind)})
		}
	}
	if !stable {
		return LeftOut("text that evades the filter")
	}
	return text
}

// filter removes forbidden text once.
func (s *filtering) filter(text string) string {
	text = s.removeEncoded(text)
	here := slices.Clone(patterns())
	for _, n := range s.names {
		if strings.Contains(text, n.name) {
			here = append(here, pattern{testName, n.expr()})
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		for _, p := range here {
			lines[i] = s.replace(lines[i], p)
		}
	}
	text = strings.Join(dropSources(lines), "\n")
	for _, kind := range kinds {
		if mark := regexp.QuoteMeta(LeftOut(kind)); strings.Count(text, LeftOut(kind)) > 1 {
			row := regexp.MustCompile(mark + `(?:` + gap + mark + `)+`)
			text = row.ReplaceAllLiteralString(text, LeftOut(kind))
		}
	}
	return text
}

// replace removes the matches of a pattern from a line, except for text of the specs.
func (s *filtering) replace(line string, p pattern) string {
	var b strings.Builder
	at := 0
	for _, m := range p.FindAllStringSubmatchIndex(line, -1) {
		from, to := m[len(m)-2], m[len(m)-1] // of group 1, if the pattern has one
		if p.line() {
			from, to = 0, len(line)
		}
		what := line[from:to]
		if from < at || s.inSpecs(what) {
			continue
		}
		s.found[p.kind] = true
		b.WriteString(line[at:from])
		if !p.line() {
			b.WriteString(what[:indent(what)])
		}
		b.WriteString(LeftOut(p.kind))
		at = to
	}
	return b.String() + line[at:]
}

// maxAsked is the maximum number of lookups in the specs for one set of entries. After it no text
// counts as text of the specs. Usual entries need few.
const maxAsked = 5000

// inSpecs reports whether the specs contain words.
func (s *filtering) inSpecs(words string) bool {
	s.asked++
	return s.asked <= maxAsked && strings.Contains(s.specs, strings.TrimSpace(words))
}

var (
	pointer     = regexp.MustCompile(`^\s*[\^~]+\s*$`)
	nothingElse = regexp.MustCompile(`^\s*\[left out: [a-z ]+\]\s*$`)
)

// dropSources removes lines of source that programs print below a place in the code: deeper lines
// below a stack trace, and a line with a pointer (^) below it.
func dropSources(lines []string) []string {
	var kept []string
	trace, depth := false, 0
	for _, line := range lines {
		n := len(kept)
		switch {
		case trace && strings.TrimSpace(line) != "" && indent(line) > depth,
			pointer.MatchString(line) && n > 0 && nothingElse.MatchString(kept[n-1]):
			continue
		case pointer.MatchString(line) && n > 1 && nothingElse.MatchString(kept[n-2]):
			kept = kept[:n-1]
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
