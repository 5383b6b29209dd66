package gateway

import (
	"maps"
	"net/http"
	"slices"

	"abl/internal/prices"
	"abl/internal/tokens"
)

// Row is what one call used of one model.
type Row struct {
	Model        string
	tokens.Count              // of the answers that were told whole
	Cost         *prices.USD  // of these; nil where the model has no price
	Requests     int64        // that a provider answered, free ones left out
	Untold       int64        // of these, answers of which the provider told nothing, or not all
	Part         tokens.Count // what it told of those
}

// Usage adds up a call's part of the log, one row a model, sorted by model.
func Usage(log []Entry, call string) []Row {
	rows := map[string]Row{}
	for _, e := range log {
		if !e.isOf(call) || e.Usage == nil || e.Req.Status >= http.StatusBadRequest && !e.Usage.Known() { // an error answer is not paid for
			continue
		}
		r := rows[e.Req.Model]
		r.Model = e.Req.Model
		r.add(e)
		rows[r.Model] = r
	}
	var sorted []Row
	for _, model := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, rows[model])
	}
	return sorted
}

// isOf says that a line is that of a request of the call which may use tokens.
func (e Entry) isOf(call string) bool {
	return e.Kind == Requested && e.Call == call && e.Req != nil && !e.Req.Free
}

// add counts one answer. It was told whole when its price is known, and where the
// model has none, when its tokens are.
func (r *Row) add(e Entry) {
	r.Requests++
	_, whole := e.Usage.All()
	if e.Req.ChargedUSD != nil {
		whole = e.Cost != nil
	}
	if !whole || e.Req.Part {
		r.Untold++
		r.Part = r.Part.Add(*e.Usage)
		return
	}
	r.Count = r.Count.Add(*e.Usage)
	if e.Cost != nil {
		sum := *e.Cost
		if r.Cost != nil {
			sum = sum.Plus(*r.Cost)
		}
		r.Cost = &sum
	}
}

// Charged is what the budgets counted of a call: estimates where its provider did
// not tell. The dollars are nil where a model without a price was asked. Lines that
// are lost are in it as far as a later one sums them up.
func Charged(log []Entry, call string) (tokens int64, usd *prices.USD) {
	usd = new(prices.USD)
	for _, e := range log {
		if e.Kind != Requested || e.Call != call || e.Req == nil || e.Req.Refused {
			continue
		}
		tokens = max(tokens, e.Req.Spent)
		switch {
		case e.Req.SpentUSD != nil && usd != nil:
			*usd = max(*usd, *e.Req.SpentUSD)
		case e.Req.Charged > 0 && e.Req.SpentUSD == nil:
			usd = nil
		}
	}
	return tokens, usd
}
