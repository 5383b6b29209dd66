// Package ledger keeps tokens.csv, the count of every token that a call used, and
// adds it up. docs/tokens-csv.md describes the columns. What tokens cost and what may
// be spent are not in it.
package ledger

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"abl/internal/prices"
	"abl/internal/redact"
	"abl/internal/tokens"

	"github.com/gocarina/gocsv"
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
	SessionID string `csv:"session_id"`
	// A decimal; Unknown where tokens were used and have no price; Subscription; "" where none were counted.
	CostUSD    string `csv:"cost_usd"`
	Source     string `csv:"source"`  // who counted: gateway, cli, api or none
	CallID     string `csv:"call_id"` // <call>.<attempt>; with Model and Source the key of the row
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

// Subscription is the cost of tokens that a plan pays for: it has no price for a token.
const Subscription = "subscription"

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
// that tells that nothing was used costs nothing, and neither does one of a subscription.
func (r Row) Cost() (prices.USD, bool) {
	if r.CostUSD == Subscription {
		return 0, true
	}
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

// clone keeps k without the line that it is a part of.
func (k key) clone() key {
	return key{strings.Clone(k.call), strings.Clone(k.model), strings.Clone(k.source)}
}

// maxCell is the longest text that a cell takes, in bytes.
const maxCell = 1 << 10

// cleanText takes out of a text what a line of tokens.csv cannot hold. Models,
// sessions and the like come out of an agent's output.
func cleanText(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case !redact.Plain(c):
			return -1
		case c == ';':
			// A spreadsheet may take it for the separator, and what follows for a formula.
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

// Foreign says that a file is not a ledger at all, so that nothing in it can be
// counted and nothing may be written to it.
type Foreign struct{ Path string }

// Error names the file and says what to do.
func (f *Foreign) Error() string {
	return fmt.Sprintf("cannot use %q as the ledger: its first line is not the header %s: move it away and run again, a new one is made", f.Path, Header)
}

// Write writes the header and rows as CSV, safe to open in a spreadsheet.
func Write(w io.Writer, rows []Row) error {
	if _, err := io.WriteString(w, Header+"\n"); err != nil {
		return fmt.Errorf("cannot write the header of the ledger: %w", err)
	}
	return write(w, rows)
}

// write writes rows alone.
func write(w io.Writer, rows []Row) error {
	safe := make([]Row, len(rows))
	for i, r := range rows {
		safe[i] = r.Map(cleanText).Map(guard)
	}
	if err := gocsv.MarshalCSV(safe, &ordered{Writer: csv.NewWriter(w)}); err != nil {
		return fmt.Errorf("cannot write rows of the ledger: %w", err)
	}
	return nil
}

// ordered puts the cells of a row, which gocsv hands over in the order of the struct,
// where the file has them. The first row are the names, which are left out.
type ordered struct {
	*csv.Writer
	at []int // by column of the file: its place in the struct
}

// Write writes one row.
func (o *ordered) Write(cells []string) error {
	if o.at == nil {
		for name := range strings.SplitSeq(Header, ",") {
			o.at = append(o.at, slices.Index(cells, name))
		}
		return nil
	}
	var row []string
	for _, at := range o.at {
		row = append(row, cells[at])
	}
	return o.Writer.Write(row)
}

// checkHeader wants a ledger's first line: ours, or the beginning of it that an
// earlier abl wrote.
func (l *Ledger) checkHeader(data []byte) (names string, err error) {
	line, _, ended := bytes.Cut(data, []byte("\n"))
	names = strings.TrimSuffix(string(line), "\r")
	if !ended || !strings.HasPrefix(names, oldHeader) || !strings.HasPrefix(Header+",", names+",") {
		return "", &Foreign{l.path}
	}
	return names, nil
}

// scan calls each with every row of a file that is understood, and bad with the number
// of every other line and the reason; neither stops the reading.
func (l *Ledger) scan(data []byte, each func(Row), bad func(line int, reason string)) error {
	if len(data) == 0 {
		return nil
	}
	header, err := l.checkHeader(data)
	if err != nil {
		return err
	}
	// Some rows at a time, names first, and the line of each: all of them take many times the file.
	const some = 1000
	good, at, no, seen := table{strings.Split(header, ",")}, []int{1}, 0, map[key]int{}
	for line := range bytes.Lines(data) {
		if no++; no == 1 {
			continue
		}
		switch cells, err := parse(line, good[0]); {
		case errors.Is(err, io.EOF): // nothing is in it
		case err != nil:
			bad(no, err.Error())
		default:
			good, at = append(good, cells), append(at, no)
		}
		if len(good) > some {
			if err := good.rows(at, seen, each, bad); err != nil {
				return err
			}
			good, at = good[:1], at[:1]
		}
	}
	return good.rows(at, seen, each, bad)
}

// rows calls each with every row that was not seen, and bad with every other. at has their lines.
func (t table) rows(at []int, seen map[key]int, each func(Row), bad func(line int, reason string)) error {
	var rows []Row
	if err := gocsv.UnmarshalCSV(t, &rows); err != nil {
		return fmt.Errorf("cannot read rows of the ledger: %w", err)
	}
	for i, r := range rows {
		line := at[i+1]
		if first := seen[r.key()]; r.CallID != "" && first > 0 {
			bad(line, fmt.Sprintf("it repeats line %d", first))
			continue
		}
		if r.CallID != "" {
			seen[r.key().clone()] = line
		}
		each(r.Map(unguard))
	}
	return nil
}

// table is what gocsv reads rows out of, the names first.
type table [][]string

// ReadAll gives all of them.
func (t table) ReadAll() ([][]string, error) { return t, nil }

// Read is not asked for.
func (t table) Read() ([]string, error) { return nil, io.EOF }

// parse reads a line of a file with these columns, io.EOF where it is empty. A cell has no
// line end in it, so that an open quote spoils no other line. gocsv would take a space for
// 0, cut 1.9 down to 1, and take 010 for 8. An ERROR for the input, as earlier ABL tools
// noted a failed call, tells no count at all.
func parse(line []byte, names []string) ([]string, error) {
	switch {
	case !bytes.HasSuffix(line, []byte("\n")):
		return nil, errors.New("it is cut off: it has no line end")
	case bytes.Count(line, []byte(`"`))%2 == 1:
		return nil, errors.New("a quoted field is not closed")
	}
	in := csv.NewReader(bytes.NewReader(line))
	in.FieldsPerRecord = len(names)
	cells, err := in.Read()
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		// The lines that it counts are not the file's.
		return nil, fmt.Errorf("it is no row of the ledger: %w", syntax.Err)
	}
	if err != nil {
		return nil, err
	}
	failed := cells[slices.Index(names, "input")] == "ERROR"
	for i, name := range names {
		if !slices.Contains(counts, name) {
			continue
		}
		if cells[i] = strings.TrimSpace(cells[i]); cells[i] == "" || failed {
			cells[i] = ""
			continue
		}
		n, err := strconv.ParseUint(cells[i], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("its %s is no count: %.40q", name, cells[i])
		}
		cells[i] = strconv.FormatUint(n, 10)
	}
	return cells, nil
}

// counts are the columns that hold numbers.
var counts = []string{"input", "candidates", "cached", "total", "thoughts", "tool", "duration_ms"}
