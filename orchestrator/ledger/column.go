package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Header is the first line of tokens.csv, without its end.
const Header = oldHeader + ",thoughts,tool,cost_usd,source,call_id,agent,duration_ms,outcome"

// oldHeader is that of the files that earlier ABL tools wrote.
const oldHeader = "timestamp,phase,step,role,model,input,candidates,cached,total,session_id"

var (
	columns    = strings.Split(Header, ",")
	oldColumns = strings.Split(oldHeader, ",")
)

// text returns where a row keeps the text of a column, by its place in Header; nil
// for a number's.
func (r *Row) text(column int) *string {
	switch column {
	case 0:
		return &r.Timestamp
	case 1:
		return &r.Phase
	case 2:
		return &r.Step
	case 3:
		return &r.Role
	case 4:
		return &r.Model
	case 9:
		return &r.SessionID
	case 12:
		return &r.CostUSD
	case 13:
		return &r.Source
	case 14:
		return &r.CallID
	case 15:
		return &r.Agent
	case 17:
		return &r.Outcome
	}
	return nil
}

// number returns where a row keeps the number of a column, nil for a text's.
func (r *Row) number(column int) **int64 {
	switch column {
	case 5:
		return &r.Input
	case 6:
		return &r.Candidates
	case 7:
		return &r.Cached
	case 8:
		return &r.Total
	case 10:
		return &r.Thoughts
	case 11:
		return &r.Tool
	case 16:
		return &r.DurationMS
	}
	return nil
}

// layout is how a file arranges the columns.
type layout struct {
	sep   byte
	width int   // fields of a line
	at    []int // by column: its place in a line, -1 when the file lacks it
	extra string
	exact bool // it is the form that abl writes
}

// layoutOf understands a file's first line: our columns or the older ten, in any
// order, with the byte order mark, quotes and semicolons of spreadsheets.
func layoutOf(line string) (layout, error) {
	if line == Header {
		l := layout{sep: ',', width: len(columns), exact: true}
		for i := range columns {
			l.at = append(l.at, i)
		}
		return l, nil
	}
	line = strings.TrimSuffix(strings.TrimPrefix(line, "\ufeff"), "\r")
	for _, sep := range []byte{',', ';', '\t'} {
		if names, err := splitLine(line, sep, nil); err == nil && len(names) >= len(oldColumns) {
			return arrange(names, sep)
		}
	}
	return layout{}, fmt.Errorf("its first line is not the header %s", oldHeader)
}

func arrange(names []string, sep byte) (layout, error) {
	l := layout{sep: sep, width: len(names), at: make([]int, len(columns))}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		if slices.Contains(names[:i], names[i]) {
			return l, fmt.Errorf("its header has %q twice", names[i])
		}
		if !slices.Contains(columns, names[i]) && l.extra == "" {
			l.extra = names[i]
		}
	}
	for i, column := range columns {
		l.at[i] = slices.Index(names, column)
		if l.at[i] < 0 && i < len(oldColumns) {
			return l, fmt.Errorf("its header lacks %q", column)
		}
	}
	return l, nil
}
