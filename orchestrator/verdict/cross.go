package verdict

import (
	"fmt"
	"regexp"
	"strings"

	"abl/orchestrator/spec"
)

// Crossing decides what of an entry may reach the Builder: the contract in its
// own words, and input and observation as far as they speak the language of the
// specs. Code, stack traces, test output, names of tests and paths of either
// workspace are replaced by a word that says what was left out. What the specs
// say themselves always passes.
type Crossing struct {
	contracts Contracts
	specs     string    // their text
	names     []pattern // of the Verifier's files and tests
}

// NewCrossing is the crossing to a Builder who works by these specs. names are
// of the Verifier's files and tests, relative to its workspace.
func NewCrossing(specs []spec.Spec, names []string) *Crossing {
	c := &Crossing{contracts: In(specs)}
	for _, s := range specs {
		c.specs += s.Text + "\n"
	}
	for _, n := range names {
		if re := nameOf(n); re != nil {
			c.names = append(c.names, pattern{testName, n, re})
		}
	}
	return c
}

// The lengths in bytes from which a name, and one of several words, is looked
// for: shorter ones are words of the language.
const (
	shortestName  = 5
	shortestTitle = 12
)

var plainName = regexp.MustCompile(`^[\w./@-]+$`)

// nameOf finds a name where it stands as a word of its own. In quotes, after an
// equals sign, in an address and in a path it is data.
func nameOf(name string) *regexp.Regexp {
	switch {
	case strings.Contains(name, " ") && len(name) >= shortestTitle:
		return regexp.MustCompile(`(?:^|\W)(` + regexp.QuoteMeta(name) + `)`)
	case len(name) < shortestName || !plainName.MatchString(name):
		return nil
	}
	before := `(?:^|[^\w"'=@/.-])`
	if strings.Contains(name, "/") {
		before = `(?:^|[^\w=@/.-])`
	} else if !strings.ContainsAny(name, "._-0123456789") {
		return nil // an ordinary word
	}
	return regexp.MustCompile(before + `((?:\./)?` + regexp.QuoteMeta(name) + `)\b`)
}

// Pass returns the entries as they may reach the Builder, and what was left out.
// Entries that became equal are passed once. What has passed passes again
// unchanged.
func (c *Crossing) Pass(entries []Entry) (passed []Entry, left []Problem) {
	seen := map[Entry]bool{}
	sift := &strainer{Crossing: c, said: map[string]bool{}}
	for _, e := range entries {
		out := e
		id := e.Contract
		if id == "" {
			id = c.contracts.Find(e.Spec)
		}
		if says, ok := c.contracts.Says(id); ok {
			out.Spec, out.Contract = says, id
		} else {
			out.Spec = sift.field(specField, e.Line, e.Spec, &left)
		}
		out.Input = sift.field(inputField, e.Line, e.Input, &left)
		out.Observed = sift.field(observedField, e.Line, e.Observed, &left)
		out = Sanitize(out)
		key := out
		key.Line = 0
		if !seen[key] {
			seen[key] = true
			passed = append(passed, out)
		}
	}
	return passed, left
}

// field is a text of an entry without what may not pass, in normal form.
func (s *strainer) field(f field, line int, text string, left *[]Problem) string {
	const rounds = 8 // what is left out may bring together what is left out in turn
	s.told = map[string]bool{}
	stable := false
	for i := 0; i < rounds && !stable; i++ {
		out := filled(s.strain(text))
		stable, text = out == text, out
	}
	for _, kind := range kinds {
		if s.told[kind] {
			*left = append(*left, Problem{Line: line, Text: fmt.Sprintf("%s holds %s, which does not reach the Builder", f, kind)})
		}
	}
	if !stable {
		return LeftOut("text that is made to pass")
	}
	return text
}
