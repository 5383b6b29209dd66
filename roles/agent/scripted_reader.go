package agent

import (
	"encoding/json"
	"fmt"

	"abl/internal/outcome"
)

// scriptedReader follows the helper's output: one Record a line, among
// raw lines that a scenario prints on purpose.
type scriptedReader struct {
	session string
	last    *Record // the result record
	speech
}

// Line implements Reader.
func (r *scriptedReader) Line(line []byte, cut bool) string {
	var rec Record
	if cut || len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &rec) != nil {
		return ""
	}
	switch rec.Type {
	case RecordInit:
		r.session = label(rec.Session, maxName)
	case RecordTool:
		r.pause()
		return action(rec.Tool, rec.Text)
	case RecordMessage:
		r.say(rec.Text + "\n")
		return label(rec.Text, maxAction)
	case RecordResult:
		r.last = &rec
	}
	return ""
}

// Result implements Reader.
func (r *scriptedReader) Result(exit int) Result {
	res := Result{Session: r.session, Requests: -1}
	if r.last != nil {
		res.Usage = scriptedUsage(r.last.Usage)
		if n := told(r.last.Requests); n != nil {
			res.Requests = *n
		}
	}
	res.Reason = r.reason(exit)
	res.Finished = res.Reason == ""
	if !res.Finished && r.last != nil {
		switch r.last.Trouble {
		case EndAway:
			res.Trouble = outcome.Unavailable
		case EndLogin:
			res.Trouble = outcome.Refused
		}
	}
	return res
}

// reason says why the call is not finished. No request is asked for: a script
// that reports no usage is still played to its end.
func (r *scriptedReader) reason(exit int) string {
	switch {
	case r.last == nil:
		return fmt.Sprintf("the scripted agent ended without a result record, with exit code %d", exit)
	case r.last.Status == StatusError && r.last.Error != "":
		return "the scripted agent failed: " + label(r.last.Error, maxReason)
	case r.last.Status != StatusSuccess:
		return fmt.Sprintf("the scripted agent reports the status %q", label(r.last.Status, maxName))
	case exit != 0:
		return fmt.Sprintf("the scripted agent failed with exit code %d", exit)
	}
	return ""
}

func scriptedUsage(reported []ScriptUsage) []Usage {
	rows := make([]Usage, 0, len(reported))
	for _, u := range reported {
		rows = append(rows, Usage{Model: label(u.Model, maxName), Count: u.Count.Sane()})
	}
	return sorted(rows)
}

// told is a figure as reported, or nil when it cannot be one.
func told(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}
