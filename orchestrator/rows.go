package orchestrator

import (
	"cmp"
	"strconv"

	"abl/internal/ledger"
	"abl/roles"
)

// Rows are the ledger rows of one ended call: one a model, and one that says
// that nobody counted when there is no usage.
func Rows(phase, step int, o roles.Outcome) []ledger.Row {
	base := ledger.Row{
		Timestamp: ledger.Stamp(o.Ended), Phase: strconv.Itoa(phase), Step: strconv.Itoa(step), Role: o.Role, Model: o.Model,
		SessionID: o.Session, Source: ledger.Nobody, CallID: o.Key, Agent: o.Agent, DurationMS: &o.Duration, Outcome: string(o.Class),
	}
	if len(o.Usage) == 0 {
		return []ledger.Row{base}
	}
	all := make([]ledger.Row, 0, len(o.Usage))
	for _, u := range o.Usage {
		r := base
		r.Model = cmp.Or(u.Model, o.Model)
		switch {
		case u.Part || u.Total == nil && u.Input == nil && u.Candidates == nil:
			r.Source = ledger.Nobody // used, and not told by whom it passed
		case o.Source == roles.CountedByGate:
			r.Source = ledger.Gateway
		default:
			r.Source = ledger.CLI
		}
		r.Count = u.Count
		if r.CostUSD = ledger.Cost(r); u.Cost != nil {
			r.CostUSD = u.Cost.String()
		}
		all = append(all, r)
	}
	return all
}
