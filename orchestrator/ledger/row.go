// Package ledger keeps tokens.csv, the count of every token that a call used,
// and adds it up. The file belongs to the person too: it is opened in
// spreadsheets, edited and cut off, so what cannot be understood is reported and
// kept, and one bad line never hides the others. docs/tokens-csv.md describes
// the columns.
package ledger

import "time"

// Row is one model's usage in one call. A nil number means that the source did
// not tell; it is never a zero.
type Row struct {
	Timestamp  string `csv:"timestamp"` // see Stamp; older files have "2006-01-02 15:04:05"
	Phase      string `csv:"phase"`
	Step       string `csv:"step"`
	Role       string `csv:"role"`
	Model      string `csv:"model"`
	Input      *int64 `csv:"input"` // prompt tokens, cached ones included
	Candidates *int64 `csv:"candidates"`
	Cached     *int64 `csv:"cached"`
	Total      *int64 `csv:"total"` // as the provider says
	SessionID  string `csv:"session_id"`
	Thoughts   *int64 `csv:"thoughts"`
	Tool       *int64 `csv:"tool"`
	CostUSD    string `csv:"cost_usd"` // a decimal; Unknown where tokens were used and have no price; "" where none were counted
	Source     string `csv:"source"`   // who counted: gateway, cli or none
	CallID     string `csv:"call_id"`  // <call>.<attempt>; with Model and Source the key of the row
	Agent      string `csv:"agent"`
	DurationMS *int64 `csv:"duration_ms"` // milliseconds
	Outcome    string `csv:"outcome"`     // how the call ended
}

// Who counted.
const (
	Gateway = "gateway"
	CLI     = "cli"
	Nobody  = "none"
)

// Unknown is the cost of tokens without a price. It is never 0.
const Unknown = "unknown"

// Stamp writes a time as the timestamp column has it: RFC 3339, UTC, seconds.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Cost is the cost_usd of a row while its model has no price: Unknown when any
// token was counted, "" when there is nothing to price.
func Cost(r Row) string {
	for _, n := range []*int64{r.Input, r.Candidates, r.Cached, r.Total, r.Thoughts, r.Tool} {
		if n != nil && *n != 0 {
			return Unknown
		}
	}
	return ""
}

// Day is the day of a row in UTC as 2006-01-02, or Unknown.
func (r Row) Day() string {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, r.Timestamp); err == nil {
			return t.UTC().Format(time.DateOnly)
		}
	}
	return Unknown
}
