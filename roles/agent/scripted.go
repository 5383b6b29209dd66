package agent

import (
	"encoding/json"
	"fmt"

	"abl/orchestrator/dirs"
)

// scenarioFile is the name under which the scenario lies in dirs.In.
const scenarioFile = "scenario.json"

// Scripted is the offline agent: abl's own helper plays the steps of a scenario
// inside the box, so that a phase can be tried without a model and without a key.
type Scripted struct {
	// Scenario gives the part of the scenario that a call plays, as the helper reads it.
	Scenario func(Call) ([]byte, error)
}

// Name is ScriptedName.
func (Scripted) Name() string { return ScriptedName }

// Image is the image without any CLI.
func (Scripted) Image() string { return "tools" }

// Version is empty: the helper is abl's own and has abl's version.
func (Scripted) Version() string { return "" }

// DefaultModel is what the ledger calls a call whose scenario names no model.
func (Scripted) DefaultModel() string { return ScriptedName }

// Command starts the helper on the scenario of this call.
func (s Scripted) Command(c Call) (Command, error) {
	script, err := s.Scenario(c)
	if err != nil {
		return Command{}, err
	}
	return Command{
		Argv:  []string{dirs.Bin + "/" + dirs.HelperAgent, dirs.In + "/" + scenarioFile},
		Env:   map[string]string{"HOME": dirs.Home},
		Files: map[string][]byte{scenarioFile: script},
	}, nil
}

// NewReader reads the helper's records.
func (Scripted) NewReader(Call) Reader { return &scriptedReader{} }

// scriptedReader follows the helper's output: one JSON record a line, among raw
// lines that a scenario prints on purpose.
type scriptedReader struct {
	session string
	last    *scriptedRecord // the result record
}

type scriptedRecord struct {
	Type     string          `json:"type"`
	Session  string          `json:"session"`
	Text     string          `json:"text"`
	Tool     string          `json:"tool"`
	Status   string          `json:"status"`
	Error    string          `json:"error"`
	Usage    []scriptedUsage `json:"usage"`
	Requests *int64          `json:"requests"`
}

type scriptedUsage struct {
	Model      string `json:"model"`
	Input      count  `json:"input"`
	Candidates count  `json:"candidates"`
	Cached     count  `json:"cached"`
	Thoughts   count  `json:"thoughts"`
	Tool       count  `json:"tool"`
	Total      count  `json:"total"`
}

// Line implements Reader.
func (r *scriptedReader) Line(line []byte, cut bool) string {
	var rec scriptedRecord
	if cut || len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &rec) != nil {
		return ""
	}
	switch rec.Type {
	case "init":
		r.session = label(rec.Session, maxName)
	case "tool":
		return action(rec.Tool, rec.Text)
	case "message":
		return label(rec.Text, maxAction)
	case "result":
		r.last = &rec
	}
	return ""
}

// Result implements Reader.
func (r *scriptedReader) Result(exit int) Result {
	res := Result{Session: r.session, Requests: -1}
	if r.last != nil {
		res.Usage, res.Requests = r.last.rows(), r.last.requests()
	}
	res.Reason = r.reason(exit, res.Requests)
	res.Finished = res.Reason == ""
	return res
}

func (r *scriptedReader) reason(exit int, requests int64) string {
	switch {
	case r.last == nil:
		return fmt.Sprintf("the scripted agent ended without a result record: exit code %d", exit)
	case r.last.Status != "success" && r.last.Error != "":
		return "the scripted agent failed: " + label(r.last.Error, maxReason)
	case r.last.Status != "success":
		return fmt.Sprintf("the scripted agent reports the status %q", label(r.last.Status, maxName))
	case exit != 0:
		return fmt.Sprintf("the scripted agent failed: exit code %d", exit)
	case requests < 1:
		return "the scripted agent ended without a model request"
	}
	return ""
}

func (rec *scriptedRecord) rows() []Usage {
	rows := make([]Usage, 0, len(rec.Usage))
	for _, u := range rec.Usage {
		rows = append(rows, Usage{
			Model: label(u.Model, maxName), Input: u.Input.n, Candidates: u.Candidates.n, Cached: u.Cached.n,
			Thoughts: u.Thoughts.n, Tool: u.Tool.n, Total: u.Total.n,
		})
	}
	return sorted(rows)
}

func (rec *scriptedRecord) requests() int64 {
	if rec.Requests == nil || *rec.Requests < 0 {
		return -1
	}
	return *rec.Requests
}
