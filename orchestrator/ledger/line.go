package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLine is the longest line that is understood, in bytes. abl's own are far
// shorter; a longer one is passed over without being held.
const maxLine = 64 << 10

// lines reads a file line by line in constant memory. A line is what ends in a
// line feed, quoted or not: a broken quote must not swallow the rest of the file.
type lines struct {
	r    *bufio.Reader
	no   int    // of the current line, from 1
	text []byte // without its end; valid until next is called again
	long bool   // it was longer than maxLine, and text is only its beginning
	torn bool   // it had no end

	over func([]byte) // takes a line that is too long, piece by piece without its end; may be nil
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, maxLine)} }

// next goes on to the next line; io.EOF says that there is none.
func (l *lines) next() error {
	text, err := l.r.ReadSlice('\n')
	l.long = errors.Is(err, bufio.ErrBufferFull)
	if l.long {
		text, err = l.pass(bytes.Clone(text))
	}
	l.torn = errors.Is(err, io.EOF)
	if err != nil && !l.torn {
		return err
	}
	if l.torn && len(text) == 0 {
		return io.EOF
	}
	l.no++
	l.text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	return nil
}

// pass passes over the rest of a line that is too long.
func (l *lines) pass(beginning []byte) ([]byte, error) {
	part, err := beginning, bufio.ErrBufferFull
	for {
		if l.over != nil {
			l.over(bytes.TrimSuffix(part, []byte("\n")))
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return beginning, err
		}
		part, err = l.r.ReadSlice('\n')
	}
}

// splitLine takes a line apart into fields, which it appends to into.
func splitLine(line string, sep byte, into []string) ([]string, error) {
	for {
		var field string
		var more bool
		if strings.HasPrefix(line, `"`) {
			end := closingQuote(line)
			if end < 0 || end+1 < len(line) && line[end+1] != sep {
				return into, errors.New("a quoted field is not closed")
			}
			field, more = strings.ReplaceAll(line[1:end], `""`, `"`), end+1 < len(line)
			line = line[min(end+2, len(line)):]
		} else {
			field, line, more = cutByte(line, sep)
		}
		into = append(into, field)
		if !more {
			return into, nil
		}
	}
}

func cutByte(s string, sep byte) (before, after string, found bool) {
	if i := strings.IndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// closingQuote finds the quote that closes a field; doubled ones belong to it.
func closingQuote(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 == len(s) || s[i+1] != '"' {
			return i
		}
		i++
	}
	return -1
}

// parser turns the lines of one file into rows.
type parser struct {
	layout
	fields []string
}

// row understands one line. Its error is a reason for a person.
func (p *parser) row(text []byte) (Row, error) {
	var r Row
	var err error
	if p.fields, err = splitLine(string(text), p.sep, p.fields[:0]); err != nil {
		return r, err
	}
	if len(p.fields) != p.width {
		return r, fmt.Errorf("it has %d fields, the header has %d", len(p.fields), p.width)
	}
	var numbers []int64
	for column, at := range p.at {
		if at < 0 {
			continue
		}
		cell := p.fields[at]
		if into := r.text(column); into != nil {
			if *into = unguard(cell); column == costColumn && p.sep != ',' {
				*into = strings.Replace(cell, ",", ".", 1) // where semicolons part cells, a comma is the point
			}
			continue
		}
		if cell = strings.TrimSpace(cell); cell == "" || cell == failed {
			continue
		}
		n, err := strconv.ParseInt(cell, 10, 64)
		if err != nil || n < 0 {
			return r, fmt.Errorf("%s is %s, which is no count", columns[column], strconv.Quote(head(cell)))
		}
		if numbers == nil { // one allocation for all of a row
			numbers = make([]int64, 0, counts)
		}
		numbers = append(numbers, n)
		*r.number(column) = &numbers[len(numbers)-1]
	}
	p.forgive(&r)
	return r, nil
}

// failed stands in the input column of older files when a call's usage could
// not be found; the zeros beside it are no counts.
const failed = "ERROR"

func (p *parser) forgive(r *Row) {
	if at := p.at[inputColumn]; strings.TrimSpace(p.fields[at]) == failed {
		r.Candidates, r.Cached, r.Total = nil, nil, nil
	}
}

const (
	inputColumn = 5
	costColumn  = 12
	counts      = 7 // columns that are numbers
)

func head(s string) string { return s[:min(len(s), 40)] }
