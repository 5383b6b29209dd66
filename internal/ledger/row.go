// Package ledger manages tokens.csv, the record of all tokens that calls used, adds them up, and
// has the prices of models by date. docs/tokens-csv.md describes the columns. The gateway, which has the
// keys, uses package prices only, without a YAML parser.
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

	"abl/internal/redact"
	"abl/internal/usage"

	"github.com/gocarina/gocsv"
)

// Header is the first line of tokens.csv. New columns are appended, so that the header of an older
// file is a prefix.
const Header = oldHeader + ",thoughts,tool,cost_usd,source,call_id,agent,duration_ms,outcome"

// oldHeader is the header in the files of older ABL tools.
const oldHeader = "timestamp,phase,step,role,model,input,candidates,cached,total,session_id"

// Row is the usage of one model in one call.
type Row struct {
	Timestamp string `csv:"timestamp"` // see Stamp; older files use "2006-01-02 15:04:05"
	Phase     string `csv:"phase"`
	Step      string `csv:"step"`
	Role      string `csv:"role"`
	Model     string `csv:"model"`
	usage.Count
	SessionID string `csv:"session_id"`
	// CostUSD is a decimal, Unknown if the tokens have no price, Subscription, or "" without
	// tokens.
	CostUSD    string `csv:"cost_usd"`
	Source     string `csv:"source"`  // origin of the counts: gateway, cli, api or none
	CallID     string `csv:"call_id"` // <call>.<attempt>; the key with Model and Source
	Agent      string `csv:"agent"`
	DurationMS *int64 `csv:"duration_ms,omitempty"` // milliseconds
	Outcome    string `csv:"outcome"`               // how the call ended
}

// Origins of counts.
const (
	Gateway = "gateway"
	CLI     = "cli"
	API     = "api" // the provider's response to a request of abl itself
	Nobody  = "none"
)

// Unknown is the cost of tokens without a price. It is never 0.
const Unknown = "unknown"

// Subscription is the cost of tokens that a subscription covers.
const Subscription = "subscription"

// Stamp formats a time for the timestamp column: RFC 3339, UTC, seconds.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Cost returns the cost_usd of a row without a price: Unknown if it has tokens, else "".
func Cost(r Row) string {
	if r.Used() {
		return Unknown
	}
	return ""
}

// Day returns the day of a row in UTC as 2006-01-02, or Unknown.
func (r Row) Day() string {
	if t := r.When(); !t.IsZero() {
		return t.Format(time.DateOnly)
	}
	return Unknown
}

// When returns the time of a row, the zero time if it has none.
func (r Row) When() time.Time {
	for _, layout := range []string{time.RFC3339, time.DateTime} {
		if t, err := time.Parse(layout, r.Timestamp); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// Cost returns the cost of the row, and false if it is unknown. A row without tokens costs nothing,
// and so does a subscription.
func (r Row) Cost() (usage.USD, bool) {
	if r.CostUSD == Subscription {
		return 0, true
	}
	if usd, err := usage.ParseUSD(strings.TrimSpace(r.CostUSD)); err == nil {
		return usd, true
	}
	return 0, r.CostUSD == "" && r.Source != Nobody && r.Total != nil && *r.Total == 0
}

// Map returns the row with f applied to each text.
func (r Row) Map(f func(string) string) Row {
	for _, text := range []*string{
		&r.Timestamp, &r.Phase, &r.Step, &r.Role, &r.Model, &r.SessionID, &r.CostUSD, &r.Source, &r.CallID, &r.Agent,
		&r.Outcome,
	} {
		*text = f(*text)
	}
	return r
}

// key identifies a row. A call has one row for each model and source.
type key struct{ call, model, source string }

// key identifies a row. A call has one row for each model and source.
func (r Row) key() key { return key{r.CallID, r.Model, r.Source} }

// clone copies the strings, so that k does not keep the whole line in memory.
func (k key) clone() key {
	return key{strings.Clone(k.call), strings.Clone(k.model), strings.Clone(k.source)}
}

// maxCell is the maximum size of a text cell in bytes.
const maxCell = 1 << 10

// cleanText removes characters that do not belong in a line of tokens.csv. Models and sessions come
// from an agent's output.
func cleanText(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case !redact.Plain(c):
			return -1
		case c == ';':
			// A spreadsheet may treat it as a separator, and the rest as a formula.
			return ','
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.ToValidUTF8(s[:min(len(s), maxCell)], "")
}

// guard adds an apostrophe to a text that a spreadsheet would treat as a formula.
func guard(s string) string {
	if formula(s) {
		return "'" + s
	}
	return s
}

// removeApostrophe removes the apostrophe.
func removeApostrophe(s string) string {
	if strings.HasPrefix(s, "'") && formula(s) {
		return s[1:]
	}
	return s
}

func formula(s string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(s,
		func(c rune) bool { return c == '\'' || unicode.IsSpace(c) }))
	return strings.ContainsRune("=+-@\t\r＝＋－＠", first)
}

// Foreign is the error for a file that is not a ledger. abl neither reads nor writes it.
type Foreign struct{ Path string }

// Error returns the path and the remedy.
func (f *Foreign) Error() string {
	return fmt.Sprintf("cannot use %q as the ledger: its first line is not the header %s: move it away and run again "+
		"to create a new one", f.Path, Header)
}

// Write writes the header and rows as CSV that is safe to open in a spreadsheet.
func Write(w io.Writer, rows []Row) error {
	if _, err := io.WriteString(w, Header+"\n"); err != nil {
		return fmt.Errorf("cannot write the header of the ledger: %w", err)
	}
	return write(w, rows)
}

// write writes rows without the header.
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

// ordered reorders the cells of a row, which gocsv passes in the order of the struct, to the order
// of the columns. It drops the first row, which is the header.
type ordered struct {
	*csv.Writer
	at []int // column of the file to index in the struct
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

// checkHeader returns the column names. It fails if the first line is neither the header nor an
// older version of it.
func (l *Ledger) checkHeader(data []byte) (names string, err error) {
	line, _, ended := bytes.Cut(data, []byte("\n"))
	names = strings.TrimSuffix(string(line), "\r")
	if !ended || !strings.HasPrefix(names, oldHeader) || !strings.HasPrefix(Header+",", names+",") {
		return "", &Foreign{l.path}
	}
	return names, nil
}

// ScanText is Scan for a text that is not in the file. It never stops early.
func (l *Ledger) ScanText(data []byte, each func(Row), bad func(line int, reason string)) error {
	if len(data) == 0 {
		return nil
	}
	header, err := l.checkHeader(data)
	if err != nil {
		return err
	}
	// Convert the rows in batches, because they need many times the memory of the file.
	const some = 1000
	good, at, no, seen := table{strings.Split(header, ",")}, []int{1}, 0, map[key]int{}
	for line := range bytes.Lines(data) {
		if no++; no == 1 {
			continue
		}
		switch cells, err := parse(line, good[0]); {
		case errors.Is(err, io.EOF): // an empty line
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

// rows calls each for every new row, and bad for every duplicate. at are the lines of the rows.
func (t table) rows(at []int, seen map[key]int, each func(Row), bad func(line int, reason string)) error {
	var rows []Row
	if err := gocsv.UnmarshalCSV(t, &rows); err != nil {
		return fmt.Errorf("cannot read rows of the ledger: %w", err)
	}
	for i, r := range rows {
		line := at[i+1]
		if first := seen[r.key()]; r.CallID != "" && first > 0 {
			bad(line, fmt.Sprintf("it duplicates line %d", first))
			continue
		}
		if r.CallID != "" {
			seen[r.key().clone()] = line
		}
		each(r.Map(removeApostrophe))
	}
	return nil
}

// table is the input of gocsv, with the header as the first row.
type table [][]string

// ReadAll returns all rows.
func (t table) ReadAll() ([][]string, error) { return t, nil }

// Read is not used.
func (t table) Read() ([]string, error) { return nil, io.EOF }

// parse splits a line into cells. It returns io.EOF for an empty line. A cell cannot contain a line
// end, so an open quote affects only its own line. parse checks counts itself, because gocsv reads
// a space as 0, 1.9 as 1 and 010 as 8. Older ABL tools wrote ERROR as the input of a failed call,
// which then has no counts.
func parse(line []byte, names []string) ([]string, error) {
	switch {
	case !bytes.HasSuffix(line, []byte("\n")):
		return nil, errors.New("incomplete: the line end is missing")
	case bytes.Count(line, []byte(`"`))%2 == 1:
		return nil, errors.New("a quoted field is not closed")
	}
	in := csv.NewReader(bytes.NewReader(line))
	in.FieldsPerRecord = len(names)
	cells, err := in.Read()
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		// Its line numbers are not those of the file.
		return nil, fmt.Errorf("not a row of the ledger: %w", syntax.Err)
	}
	if err != nil {
		return nil, err
	}
	failed := cells[slices.Index(names, "input")] == "ERROR"
	for i, name := range names {
		if !slices.Contains(counts, name) {
			continue
		}
		cells[i] = strings.TrimSpace(cells[i])
		if cells[i] == "" || failed {
			cells[i] = ""
			continue
		}
		n, err := strconv.ParseUint(cells[i], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%s is %.40q, want a whole number", name, cells[i])
		}
		cells[i] = strconv.FormatUint(n, 10)
	}
	return cells, nil
}

// counts are the columns with numbers.
var counts = []string{"input", "candidates", "cached", "total", "thoughts", "tool", "duration_ms"}
