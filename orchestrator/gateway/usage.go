package gateway

import (
	"maps"
	"net/http"
	"slices"

	"abl/orchestrator/gateway/meter"
)

// Row is what one call used of one model.
type Row struct {
	Model string
	meter.Usage
	Requests int64 // that a provider answered, free ones left out
	Untold   int64 // of these, answers of which the provider told nothing: the usage is a lower bound then
}

// Usage adds up a call's part of the log, one row a model, sorted by model.
func Usage(log []Entry, call string) []Row {
	rows := map[string]Row{}
	for _, e := range log {
		if e.Kind != Requested || e.Call != call || e.Usage == nil || e.Req == nil || e.Req.Free {
			continue
		}
		if e.Req.Status >= http.StatusBadRequest && !e.Usage.Known() { // an error answer is not paid for
			continue
		}
		r := rows[e.Req.Model]
		r.Model = e.Req.Model
		r.Usage = r.Usage.Add(*e.Usage)
		r.Requests++
		if !e.Usage.Known() {
			r.Untold++
		}
		rows[r.Model] = r
	}
	var sorted []Row
	for _, model := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, rows[model])
	}
	return sorted
}
