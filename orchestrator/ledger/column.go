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

// text returns where a row keeps the text of a column, nil for a number's.
func (r *Row) text(column int) *string {
	switch columns[column] {
	case "timestamp":
		return &r.Timestamp
	case "phase":
		return &r.Phase
	case "step":
		return &r.Step
	case "role":
		return &r.Role
	case "model":
		return &r.Model
	case "session_id":
		return &r.SessionID
	case "cost_usd":
		return &r.CostUSD
	case "source":
		return &r.Source
	case "call_id":
		return &r.CallID
	case "agent":
		return &r.Agent
	case "outcome":
		return &r.Outcome
	}
	return nil
}

// number returns where a row keeps the number of a column, nil for a text's.
func (r *Row) number(column int) **int64 {
	switch columns[column] {
	case "input":
		return &r.Input
	case "candidates":
		return &r.Candidates
	case "cached":
		return &r.Cached
	case "total":
		return &r.Total
	case "thoughts":
		return &r.Thoughts
	case "tool":
		return &r.Tool
	case "duration_ms":
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
