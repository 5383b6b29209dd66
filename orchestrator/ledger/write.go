package ledger

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gocarina/gocsv"

	"abl/internal/redact"
)

// Writer writes rows as CSV, safe to open in a spreadsheet, some at a time.
type Writer struct {
	w    io.Writer
	rows []Row
}

// NewWriter writes to w; Flush has to be called in the end.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// atOnce is how many rows are encoded together.
const atOnce = 256

// Header writes the first line.
func (w *Writer) Header() error {
	_, err := io.WriteString(w.w, Header+"\n")
	return err
}

// Write takes one row.
func (w *Writer) Write(r Row) error {
	if w.rows = append(w.rows, r); len(w.rows) < atOnce {
		return nil
	}
	return w.Flush()
}

// Flush writes what was taken.
func (w *Writer) Flush() error {
	data, err := encode(w.rows)
	w.rows = w.rows[:0]
	if err == nil {
		_, err = w.w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("cannot write rows of the ledger: %w", err)
	}
	return nil
}

// encode writes rows without a header, one line each.
func encode(rows []Row) ([]byte, error) {
	safe := make([]Row, len(rows))
	for i, r := range rows {
		safe[i] = clean(r).Map(guard)
	}
	var b bytes.Buffer
	if err := gocsv.MarshalWithoutHeaders(safe, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxCell is the longest text that a cell takes, in bytes.
const maxCell = 1 << 10

// Map returns the row with each of its texts changed by f.
func (r Row) Map(f func(string) string) Row {
	for column := range columns {
		if text := r.text(column); text != nil {
			*text = f(*text)
		}
	}
	return r
}

// clean takes out of a row's texts what a line of tokens.csv cannot hold.
// Models, sessions and the like come out of an agent's output.
func clean(r Row) Row { return r.Map(cleanText) }

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
