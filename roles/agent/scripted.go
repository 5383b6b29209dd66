package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/outcome"
)

// ScriptedName is the name of the offline agent.
const ScriptedName = "scripted"

// scenarioFile is the name of the file with a call's part of a scenario in helper.In.
const scenarioFile = "scenario.json"

// ErrNoCall means that a scenario has no entry for a call.
var ErrNoCall = errors.New("the scenario has no entry for this call")

// Scripted returns the offline agent: abl's helper plays the steps of a scenario in the container,
// so that a phase needs no model and no key. dir is the folder of the scenario, with its texts.
// Commands of the scenario may access the provider served, which may be zero.
func Scripted(s Scenario, dir string, served Provider) Agent {
	return Agent{
		Name:         ScriptedName,
		Image:        "tools",
		DefaultModel: ScriptedName,
		Provider:     served,
		Command:      func(c Call) (Command, error) { return s.command(dir, c) },
		NewReader:    func(Call) Reader { return &scriptedReader{name: "the scripted agent"} },
	}
}

// command returns the command that plays the scenario's entry for a call. It fails without an
// entry.
func (s Scenario) command(dir string, c Call) (Command, error) {
	call, ok := s.Pick(c.Role, c.Phase, c.Iteration, c.Attempt)
	if !ok {
		return Command{}, fmt.Errorf("%w: the %s of phase %d, iteration %d, attempt %d",
			ErrNoCall, c.Role, c.Phase, c.Iteration, c.Attempt)
	}
	call, err := call.Resolve(dir)
	if err != nil {
		return Command{}, fmt.Errorf("cannot play the %s of phase %d, iteration %d: %w", c.Role, c.Phase, c.Iteration, err)
	}
	call.Step, call.Session = c.Step, c.Session
	script, err := json.Marshal(call)
	return Command{
		Argv:  []string{helper.Bin + "/" + helper.HelperAgent, helper.In + "/" + scenarioFile},
		Env:   map[string]string{"HOME": helper.Home, "ABL_MODEL": c.Model},
		Files: map[string][]byte{scenarioFile: script},
	}, err
}

// Record is a line of JSON on the scripted agent's standard output. Readers ignore other lines,
// which a raw step prints.
type Record struct {
	Type string `json:"type"` // one of the Record constants

	// With RecordInit.
	Role      string `json:"role,omitempty"`
	Phase     int    `json:"phase,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Session   string `json:"session,omitempty"`

	// With RecordTool: the step's action, such as write or run.
	Tool string `json:"tool,omitempty"`
	// The text or output; with RecordTool the path or the command.
	Text string `json:"text,omitempty"`

	// With RecordResult, the last line of a call that ended properly.
	Status string `json:"status,omitempty"` // StatusSuccess or StatusError
	Error  string `json:"error,omitempty"`  // the reason of an error
	// EndAway or EndLogin: the class of the error.
	Trouble  End           `json:"trouble,omitempty"`
	Usage    []ScriptUsage `json:"usage,omitempty"`
	Requests *int64        `json:"requests,omitempty"` // model requests, over all models
}

// The types of records, and the statuses of a RecordResult.
const (
	RecordInit    = "init"
	RecordMessage = "message"
	RecordTool    = "tool"
	RecordOutput  = "output"
	RecordResult  = "result"

	StatusSuccess = "success"
	StatusError   = "error"
)

// scriptedReader reads the helper's output: a Record per line, and raw lines.
type scriptedReader struct {
	name      string // of the agent
	needsTool bool   // a call without a tool counts as nothing done
	last      Record // the result record
	follower
}

// Line implements Reader.
func (r *scriptedReader) Line(line []byte, cut bool) (all []Message) {
	var rec struct {
		Record
		stamped
	}
	is := r.record(line, cut, &rec)
	if len(line) == 0 || is && rec.Type != RecordOutput {
		all = r.whole()
	}
	if !is {
		return all
	}
	switch rec.Type {
	case RecordInit:
		r.session = label(rec.Session, maxName)
	case RecordTool:
		r.tools++
		r.pause()
		return append(all, r.message(Called, action(rec.Tool, rec.Text), rec.Text)...)
	case RecordMessage:
		r.say(rec.Text + "\n")
		return append(all, r.message(Said, rec.Text, "")...)
	case RecordOutput:
		r.piece(Returned, rec.Text+"\n")
	case RecordResult:
		r.last = rec.Record
	}
	return all
}

// Result implements Reader. It requires no usage, which a scenario need not report.
func (r *scriptedReader) Result(exit int) Result {
	name := r.name
	end, res := r.last, Result{Requests: -1}
	for _, u := range end.Usage {
		res.Usage = append(res.Usage, Usage{Model: label(u.Model, maxName), Count: u.Count.Sane()})
	}
	slices.SortFunc(res.Usage, byModel)
	if n := end.Requests; n != nil && *n >= 0 {
		res.Requests = *n
	}
	switch {
	case end.Type == "":
		res.Reason = r.noRecord(name, exitCode(exit))
	case end.Status == StatusError && end.Error != "":
		res.Reason = name + " failed: " + label(end.Error, maxReason)
	case end.Status != StatusSuccess:
		res.Reason = fmt.Sprintf("%s reports the status %q", name, label(end.Status, maxName))
	}
	if res.Reason != "" {
		res.Trouble = map[End]outcome.Outcome{EndAway: outcome.Unavailable, EndLogin: outcome.Refused}[end.Trouble]
	}
	return r.ended(res, name, exit, true, r.needsTool && r.tools == 0)
}

func byModel(a, b Usage) int { return strings.Compare(a.Model, b.Model) }
