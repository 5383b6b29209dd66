// Package ledger keeps tokens.csv, the count of every token that a call used, and
// adds it up. docs/tokens-csv.md describes the columns. What tokens cost and what may
// be spent are not in it.
package ledger

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"abl/internal/prices"
	"abl/internal/redact"
	"abl/internal/tokens"
)

// Header is the first line of tokens.csv, without its end. Further columns are added
// at its end, so that a file of an earlier abl begins as ours does.
const Header = oldHeader + ",thoughts,tool,cost_usd,source,call_id,agent,duration_ms,outcome"

// oldHeader is that of the files that earlier ABL tools wrote.
const oldHeader = "timestamp,phase,step,role,model,input,candidates,cached,total,session_id"

// Row is one model's usage in one call.
type Row struct {
	Timestamp string `csv:"timestamp"` // see Stamp; older files have "2006-01-02 15:04:05"
	Phase     string `csv:"phase"`
	Step      string `csv:"step"`
	Role      string `csv:"role"`
	Model     string `csv:"model"`
	tokens.Count
	SessionID  string `csv:"session_id"`
	CostUSD    string `csv:"cost_usd"` // a decimal; Unknown where tokens were used and have no price; "" where none were counted
	Source     string `csv:"source"`   // who counted: gateway, cli, api or none
	CallID     string `csv:"call_id"`  // <call>.<attempt>; with Model and Source the key of the row
	Agent      string `csv:"agent"`
	DurationMS *int64 `csv:"duration_ms,omitempty"` // milliseconds
	Outcome    string `csv:"outcome"`               // how the call ended
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
	if r.Used() {
		return Unknown
	}
	return ""
}

// Day is the day of a row in UTC as 2006-01-02, or Unknown.
func (r Row) Day() string {
	if t := r.When(); !t.IsZero() {
		return t.Format(time.DateOnly)
	}
	return Unknown
}

// When is the time of a row, zero where it does not tell.
func (r Row) When() time.Time {
	for _, layout := range []string{time.RFC3339, time.DateTime} {
		if t, err := time.Parse(layout, r.Timestamp); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Cost is what the row says that it costs; false where it does not know. A row
// that tells that nothing was used costs nothing.
func (r Row) Cost() (prices.USD, bool) {
	if usd, err := prices.Parse(strings.TrimSpace(r.CostUSD)); err == nil {
		return usd, true
	}
	return 0, r.CostUSD == "" && r.Source != Nobody && r.Total != nil && *r.Total == 0
}

// Map returns the row with each of its texts changed by f.
func (r Row) Map(f func(string) string) Row {
	for _, text := range []*string{
		&r.Timestamp, &r.Phase, &r.Step, &r.Role, &r.Model, &r.SessionID, &r.CostUSD, &r.Source, &r.CallID, &r.Agent, &r.Outcome,
	} {
		*text = f(*text)
	}
	return r
}

// key tells rows apart: a call has one for each model and for each that counted.
type key struct{ call, model, source string }

func (r Row) key() key { return key{r.CallID, r.Model, r.Source} }

// maxCell is the longest text that a cell takes, in bytes.
const maxCell = 1 << 10

// cleanText takes out of a text what a line of tokens.csv cannot hold. Models,
// sessions and the like come out of an agent's output.
func cleanText(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case !redact.Plain(c):
			return -1
		case c == ';': // a spreadsheet may take it for the separator, and what follows for a formula
			return ','
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.ToValidUTF8(s[:min(len(s), maxCell)], "")
}

// guard keeps a spreadsheet from taking a text for a formula.
func guard(s string) string {
	if formula(s) {
		return "'" + s
	}
	return s
}

// unguard takes off what guard put on.
func unguard(s string) string {
	if strings.HasPrefix(s, "'") && formula(s) {
		return s[1:]
	}
	return s
}

func formula(s string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(s, func(c rune) bool { return c == '\'' || unicode.IsSpace(c) }))
	return strings.ContainsRune("=+-@\t\r＝＋－＠", first)
}
