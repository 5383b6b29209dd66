package ledger

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gocarina/gocsv"
)

// Foreign says that a file is not a ledger at all, so that nothing in it can be
// counted and nothing may be written to it.
type Foreign struct{ Reason string }

// Error gives the reason.
func (f *Foreign) Error() string { return f.Reason }

// Write writes the header and rows as CSV, safe to open in a spreadsheet.
func Write(w io.Writer, rows []Row) error { return write(w, rows, true) }

func write(w io.Writer, rows []Row, header bool) error {
	safe := make([]Row, len(rows))
	for i, r := range rows {
		safe[i] = r.Map(cleanText).Map(guard)
	}
	if err := gocsv.MarshalCSV(safe, &ordered{Writer: csv.NewWriter(w), header: header}); err != nil {
		return fmt.Errorf("cannot write rows of the ledger: %w", err)
	}
	return nil
}

// ordered puts the cells of a row, which gocsv hands over in the order of the struct,
// where the file has them. The first row are the names.
type ordered struct {
	*csv.Writer
	header bool
	at     []int // by column of the file: its place in the struct
}

// Write writes one row.
func (o *ordered) Write(cells []string) error {
	first := o.at == nil
	if first {
		for name := range strings.SplitSeq(Header, ",") {
			o.at = append(o.at, slices.Index(cells, name))
		}
	}
	if first && !o.header {
		return nil
	}
	row := make([]string, len(o.at))
	for i, at := range o.at {
		row[i] = cells[at]
	}
	return o.Writer.Write(row)
}

// checkHeader wants a ledger's first line: ours, or the beginning of it that an
// earlier abl wrote.
func checkHeader(data []byte) (names string, err error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	names = strings.TrimSuffix(string(line), "\r")
	if !strings.HasPrefix(names, oldHeader) || !strings.HasPrefix(Header+",", names+",") {
		return "", &Foreign{"its first line is not the header " + Header}
	}
	return names, nil
}

// scan calls each with every row of a file that is understood, and bad with the number
// of every other line and the reason; neither stops the reading.
func scan(data []byte, each func(Row), bad func(line int, reason string)) error {
	if len(data) == 0 {
		return nil
	}
	if _, err := checkHeader(data); err != nil {
		return err
	}
	in := &lines{rest: data, bad: bad}
	rows, err := gocsv.NewUnmarshaller(csv.NewReader(in), Row{})
	if err != nil {
		return err
	}
	for {
		one, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r, _ := one.(Row)
		switch {
		case err != nil:
			bad(in.no, reason(err))
		case r.Sane() != r.Count:
			bad(in.no, "it has a count below 0")
		default:
			each(r.Map(unguard))
		}
	}
}

// reason takes out of a library's error what only a programmer understands: the lines
// that encoding/csv counts are without those left out, and gocsv's fields are the struct's.
func reason(err error) string {
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return "it is no row of the ledger: " + syntax.Err.Error()
	}
	_, why, _ := strings.Cut(err.Error(), "]: ")
	return "it has a number that is none: " + why
}

// lines gives a CSV reader one line at a time. A cell has no line end in it, so that a
// line with an open quote is left out, and spoils no other.
type lines struct {
	rest, line []byte
	no         int // of line, from 1
	bad        func(line int, reason string)
}

// Read gives what is left of a line.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.line) == 0 {
		if len(l.rest) == 0 {
			return 0, io.EOF
		}
		l.no++
		end := bytes.IndexByte(l.rest, '\n') + 1
		if end == 0 {
			l.bad(l.no, "it is cut off: it has no line end")
			return 0, io.EOF
		}
		if bytes.Count(l.rest[:end], []byte(`"`))%2 == 1 {
			l.bad(l.no, "a quoted field is not closed")
		} else {
			l.line = l.rest[:end]
		}
		l.rest = l.rest[end:]
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}
