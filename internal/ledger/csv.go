package ledger

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
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
	if errors.Is(err, io.EOF) {
		return nil // a header without its end
	}
	if err != nil {
		return err
	}
	seen := map[key]int{} // the line of each row
	for {
		one, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r, _ := one.(Row)
		switch first := seen[r.key()]; {
		case err != nil:
			bad(in.no, reason(err))
		case r.CallID != "" && first > 0:
			bad(in.no, fmt.Sprintf("it repeats line %d", first))
		default:
			seen[r.key()] = in.no
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
	return err.Error()
}

// lines gives a CSV reader one line at a time. A cell has no line end in it, so that a
// line with an open quote is left out, and spoils no other.
type lines struct {
	rest, line []byte
	no         int // of line, from 1
	bad        func(line int, reason string)
	numbers    map[int]string // by column of the file: the name of a count
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
		var err error
		if l.line, err = l.checked(l.rest[:end]); err != nil {
			l.bad(l.no, err.Error())
		}
		l.rest = l.rest[end:]
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

// checked is a line whose counts gocsv may read: it would take space for 0, cut 1.9
// down to 1, and take 010 for 8. An ERROR for the input, as earlier ABL tools noted a
// failed call, tells no count at all.
func (l *lines) checked(line []byte) ([]byte, error) {
	if bytes.Count(line, []byte(`"`))%2 == 1 {
		return nil, errors.New("a quoted field is not closed")
	}
	cells, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return line, nil // the reader tells the mistake
	}
	if l.numbers == nil {
		l.numbers = counts(cells)
		return line, nil
	}
	failed := len(cells) > inputAt && cells[inputAt] == "ERROR"
	for at, name := range l.numbers {
		if at >= len(cells) {
			continue
		}
		if cells[at] = strings.TrimSpace(cells[at]); cells[at] == "" || failed {
			cells[at] = ""
			continue
		}
		n, err := strconv.ParseUint(cells[at], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("its %s is no count: %.40q", name, cells[at])
		}
		cells[at] = strconv.FormatUint(n, 10)
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	err = w.Write(cells)
	w.Flush()
	return out.Bytes(), err
}

// inputAt is the column of the input in every ledger.
const inputAt = 5

// counts are the columns of a header that hold counts.
func counts(header []string) map[int]string {
	numbers := map[int]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, _, _ := strings.Cut(f.Tag.Get("csv"), ",")
		if at := slices.Index(header, name); at >= 0 && f.Type == reflect.TypeFor[*int64]() {
			numbers[at] = name
		}
	}
	return numbers
}
