package lint

import (
	"regexp"
	"strings"

	"abl/orchestrator/spec"
)

// pairs are the contracts met so far, by their action.
type pairs map[string][]spec.Contract

// maxAlike is with how many contracts of the same action one is compared.
const maxAlike = 20

// against compares a contract with those of the same action before it, in its
// own spec and in those of earlier phases.
func (r *remarks) against(c spec.Contract, seen pairs) {
	words := same(c.Under + " " + c.Action)
	for _, before := range seen[words] {
		if r.compare(before, c) {
			break // one remark is enough
		}
	}
	if len(seen[words]) < maxAlike {
		seen[words] = append(seen[words], c)
	}
}

// compare says whether there was something to say about two contracts of one
// action. What stands under different headings may be meant for different cases,
// which is no error: but nobody knows who reads the contract alone.
func (r *remarks) compare(a, b spec.Contract) bool {
	here := r.spec.Number == phaseOf(a)
	apart := a.Place != b.Place
	alternative := failure.MatchString(a.Result) || failure.MatchString(b.Result)
	x, xOK := status(a.Result)
	y, yOK := status(b.Result)
	switch {
	case same(a.Result) == same(b.Result) && here && apart:
		return false
	case same(a.Result) == same(b.Result):
		r.add(b.Line, b.ID, "duplicate", b.ID+" says the same as "+where(a, r.spec), "leave one of them out: what a phase has promised, all later ones keep")
	case alternative:
		return false
	case xOK && yOK && x != y:
		p := r.add(b.Line, b.ID, "contradiction", b.ID+" wants "+y+" where "+where(a, r.spec)+" wants "+x+", for the same action",
			"both have to hold at the same time: say in each action when it applies")
		p.Error = !apart && !condition.MatchString(a.Result+" "+b.Result)
	case apart && here:
		return false
	default:
		r.add(b.Line, b.ID, "contradiction", b.ID+" has the action of "+where(a, r.spec)+" and another result",
			"both have to hold at the same time: if they cannot, say in each action when it applies; if they can, make one of them")
	}
	return true
}

// where names a contract for a reader of this spec.
func where(c spec.Contract, s spec.Spec) string {
	if phaseOf(c) != s.Number {
		return c.ID + " (\"" + clip(c.Says()) + "\")"
	}
	return c.ID
}

func clip(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

var (
	// A result that says when it is one belongs into the action, but contradicts nobody.
	condition = regexp.MustCompile(`(?i)\(|\b(?:if|when|whenever|unless|otherwise|else|without|once|after|before|until|while|in case|as long as|provided|for|on|at)\b`)
	failure   = regexp.MustCompile(`^[A-Z][a-z]+(?: [a-z]+)*: `) // of a line that says what happens when it goes wrong
	leadCode  = regexp.MustCompile(`(?i)^(?:(?:http(?:/[\d.]+)?|status|code|status code|returns?|responds? with|answers? with)[ :]+)*([1-5]\d\d)\b`)
	exitCode  = regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: (?:with|code|status))*[ :]+(\d{1,3})\b`)
	noLetters = regexp.MustCompile("[\\s*_`.,;]+")
)

// status is the number that a result answers with, of HTTP or of a process.
func status(result string) (string, bool) {
	if m := leadCode.FindStringSubmatch(result); m != nil {
		return m[1], true
	}
	if m := exitCode.FindStringSubmatch(result); m != nil {
		return "exit code " + m[1], true
	}
	return "", false
}

// same is a text as far as it matters for being the same.
func same(text string) string {
	return strings.TrimSpace(noLetters.ReplaceAllString(text, " "))
}

// phaseOf is the phase of a contract's id, the number after the P.
func phaseOf(c spec.Contract) int {
	n := 0
	for _, digit := range strings.TrimPrefix(c.ID, "P") {
		if digit < '0' || digit > '9' {
			break
		}
		n = n*10 + int(digit-'0')
	}
	return n
}
