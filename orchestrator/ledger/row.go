// Package ledger keeps tokens.csv, the count of every token that a call used,
// and adds it up. The file belongs to the person too: it is opened in
// spreadsheets, edited and cut off, so what cannot be understood is reported and
// kept, and one bad line never hides the others. docs/tokens-csv.md describes
// the columns.
package ledger

import (
	"math"
	"strings"
	"time"

	"abl/orchestrator/prices"
)

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
	Source     string `csv:"source"`   // who counted: gateway, cli, api or none
	CallID     string `csv:"call_id"`  // <call>.<attempt>; with Model and Source the key of the row
	Agent      string `csv:"agent"`
	DurationMS *int64 `csv:"duration_ms"` // milliseconds
	Outcome    string `csv:"outcome"`     // how the call ended
}

// Who counted.
const (
	Gateway = "gateway"
	CLI     = "cli"
	API     = "api" // the provider's answer, to a question of abl's own
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
	if day, ok := stamped(r.Timestamp); ok {
		return day
	}
	if t := r.When(); !t.IsZero() {
		return t.Format(time.DateOnly)
	}
	return Unknown
}

// When is the time of a row, zero where it does not tell.
func (r Row) When() time.Time {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, r.Timestamp); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Cost is what the row says that it costs; false where it does not know. A row
// that tells that nothing was used costs nothing.
func (r Row) Cost() (prices.USD, bool) {
	if r.CostUSD == Unknown {
		return 0, false
	}
	if usd, err := prices.Parse(strings.TrimSpace(r.CostUSD)); err == nil {
		return usd, true
	}
	return 0, r.CostUSD == "" && r.Source != Nobody && r.Total != nil && *r.Total == 0
}

// Tokens is what the row used in all: its total, else the sum of its parts; false
// where it tells too little for either.
func (r Row) Tokens() (int64, bool) {
	if r.Total != nil {
		return *r.Total, true
	}
	if r.Input == nil || r.Candidates == nil {
		return 0, false
	}
	sum := *r.Input
	for _, n := range []*int64{r.Candidates, r.Thoughts, r.Tool} {
		if n != nil && *n > 0 && sum <= math.MaxInt64-*n {
			sum += *n
		}
	}
	return sum, true
}

// stamped is the day of a time that Stamp wrote, without taking it apart.
func stamped(text string) (day string, ok bool) {
	const form = "2006-01-02T15:04:05Z"
	if len(text) != len(form) {
		return "", false
	}
	for i, c := range []byte(text) {
		if digit := form[i] >= '0' && form[i] <= '9'; digit && (c < '0' || c > '9') || !digit && c != form[i] {
			return "", false
		}
	}
	month, date := text[5:7], text[8:10]
	return text[:10], month >= "01" && month <= "12" && date >= "01" && date <= "31" && text[11:13] < "24" && text[14:16] < "60" && text[17:19] < "60"
}
