package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/orchestrator/evidence"
)

// Open returns the heading of the failures or gaps, "" for a phase that passed.
func (p Page) Open() string {
	switch {
	case p.Record == nil || p.Record.Verdict == audit.Pass:
		return ""
	case p.Record.Verdict == audit.Fail:
		return "What failed"
	}
	return "What is missing"
}

// failure is a contract that failed, with its input and the observation.
type failure struct{ ID, Says, Input, Observed string }

// maxFailures is the number of failures at the top of the page.
const maxFailures = 20

// Failures returns the failures of the newest iteration, at most maxFailures.
func (p Page) Failures() []failure {
	all := p.failures()
	return all[:min(len(all), maxFailures)]
}

// MoreFailures returns the number of failures that are left out.
func (p Page) MoreFailures() int { return max(0, len(p.failures())-maxFailures) }

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
		for _, e := range otherEntries(r) {
			all = append(all, failure{"", e.Spec, e.Input, e.Observed})
		}
	}
	return all
}

// Players returns the agents and models of the newest call of each role.
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

// SpecText returns the spec, cut to the size for it.
func (p Page) SpecText() string {
	room := allowance(2 * maxOneDiff)
	text, _ := room.fit(p.Spec, maxOneDiff)
	return text
}

// worked sums the times of the calls and replays of all iterations. unknown is true if some have no
// times.
func (r Run) worked() (took time.Duration, calls int, unknown bool) {
	unknown = len(r.Judged()) == 0
	for _, rec := range r.Judged() {
		for _, c := range rec.Calls {
			if calls++; c.Started.IsZero() || c.Ended.Before(c.Started) {
				unknown = true
				continue
			}
			took += c.Ended.Sub(c.Started)
		}
		for _, run := range rec.Replays {
			took += time.Duration(run.MS) * time.Millisecond
		}
	}
	return took, calls, unknown
}

// strengthOf returns for how many contracts the tests detect altered responses, "" if unknown.
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
