package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/orchestrator/evidence"
)

// Open is the heading of what keeps the phase from passing, "" for a phase that passed.
func (p Page) Open() string {
	switch {
	case p.Record == nil || p.Record.Verdict == audit.Pass:
		return ""
	case p.Record.Verdict == audit.Fail:
		return "What failed"
	}
	return "What is missing"
}

// failure is a contract that failed, with what went in and what was observed.
type failure struct{ ID, Says, Input, Observed string }

// mostFailures is how many failures have room at the head of the page.
const mostFailures = 20

// Failures are the first failures of the newest iteration.
func (p Page) Failures() []failure {
	all := p.failures()
	return all[:min(len(all), mostFailures)]
}

// MoreFailures is how many failures are left out.
func (p Page) MoreFailures() int { return max(0, len(p.failures())-mostFailures) }

func (p Page) failures() (all []failure) {
	if p.Record == nil {
		return nil
	}
	r := *p.Record
	for _, c := range r.Contracts {
		if e, ok := given(c, r); ok {
			all = append(all, failure{c.ID, c.Says, e.Input, e.Observed})
		} else if c.Result == audit.Fail {
			all = append(all, failure{c.ID, c.Says, c.Input, c.Observed})
		}
	}
	if r.Verdict == audit.Fail {
		for _, e := range besides(r) {
			all = append(all, failure{"", e.Spec, e.Input, e.Observed})
		}
	}
	return all
}

// Players are the agents and models of the newest call of each role.
func (p Page) Players() string {
	var roles, texts []string
	for _, r := range slices.Backward(p.Judged()) {
		for _, c := range slices.Backward(r.Calls) {
			name := map[string]string{"builder": "Builder", "verifier": "Verifier"}[c.Role]
			if name != "" && c.Agent != "" && !slices.Contains(roles, name) {
				roles = append(roles, name)
				texts = append(texts, name+": "+strings.TrimSpace(c.Agent+" "+c.Model))
			}
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// SpecText is the spec, cut to the room that the page has for it.
func (p Page) SpecText() string {
	room := allowance(2 * maxOneDiff)
	text, _ := room.keep(p.Spec, maxOneDiff)
	return text
}

// worked adds up the calls and replays of all iterations. untold says that some have no times.
func (r Run) worked() (took time.Duration, calls int, untold bool) {
	untold = len(r.Judged()) == 0
	for _, rec := range r.Judged() {
		for _, c := range rec.Calls {
			if calls++; c.Started.IsZero() || c.Ended.Before(c.Started) {
				untold = true
				continue
			}
			took += c.Ended.Sub(c.Started)
		}
		for _, run := range rec.Replays {
			took += time.Duration(run.MS) * time.Millisecond
		}
	}
	return took, calls, untold
}

// strengthOf says for how many contracts the tests detect altered responses, "" if that is not known.
func strengthOf(r *audit.Record) string {
	if r.Strength == "" {
		return ""
	}
	text, of, n := evidence.StrengthText(r.Strength, r.Kind == "command"), 0, 0
	if _, err := fmt.Sscanf(r.Strength, "shown for %d of %d contract", &n, &of); err == nil && of < len(r.Contracts) {
		text += fmt.Sprintf(" (abl can alter the responses of %d of %d)", of, len(r.Contracts))
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
