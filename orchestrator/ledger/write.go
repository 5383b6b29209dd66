package ledger

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gocarina/gocsv"
)

// Export writes rows as CSV with the header, safe to open in a spreadsheet.
func Export(w io.Writer, rows []Row) error {
	data, err := encode(rows)
	if err == nil {
		_, err = w.Write(append([]byte(Header+"\n"), data...))
	}
	if err != nil {
		return fmt.Errorf("cannot export the ledger: %w", err)
	}
	return nil
}

// encode writes rows without a header, one line each.
func encode(rows []Row) ([]byte, error) {
	safe := make([]Row, len(rows))
	for i, r := range rows {
		safe[i] = clean(r)
		for column := range columns {
			if text := safe[i].text(column); text != nil {
				*text = guard(*text)
			}
		}
	}
	var b bytes.Buffer
	if err := gocsv.MarshalWithoutHeaders(safe, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxCell is the longest text that a cell takes, in bytes.
const maxCell = 1 << 10

// clean takes out of a row's texts what a line of tokens.csv cannot hold.
// Models, sessions and the like come out of an agent's output.
func clean(r Row) Row {
	for column := range columns {
		if text := r.text(column); text != nil {
			*text = cleanText(*text)
		}
	}
	return r
}

func cleanText(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsControl(c), unicode.In(c, unicode.Zl, unicode.Zp, unicode.Bidi_Control), c == '\ufeff':
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
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, "' "))
	return strings.ContainsRune("=+-@\t\r＝＋－＠", first)
}
