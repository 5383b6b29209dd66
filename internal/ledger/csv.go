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

	"github.com/gocarina/gocsv"
)

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
	good, at, no := table{strings.Split(header, ",")}, []int{1}, 0 // the rows, names first, and the line of each
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
	}
	var rows []Row
	if err := gocsv.UnmarshalCSV(good, &rows); err != nil {
		return fmt.Errorf("cannot read rows of the ledger: %w", err)
	}
	seen := map[key]int{} // the line of each row
	for i, r := range rows {
		line := at[i+1]
		if first := seen[r.key()]; r.CallID != "" && first > 0 {
			bad(line, fmt.Sprintf("it repeats line %d", first))
			continue
		}
		seen[r.key()] = line
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
		return nil, fmt.Errorf("it is no row of the ledger: %w", syntax.Err) // the lines that it counts are not the file's
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
