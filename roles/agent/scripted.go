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

// scenarioFile is the name under which a call's script lies in helper.In.
const scenarioFile = "scenario.json"

// ErrNoCall means that a scenario does not say what to do in a call.
var ErrNoCall = errors.New("the scenario has no entry for this call")

// Scripted is the offline agent: abl's own helper plays the steps of a scenario
// inside the box, so that a phase can be tried without a model and without a key.
// dir is the scenario file's own folder, below which its texts are. The commands of
// the scenario may ask the provider, mostly nobody; its usage names its models itself.
func Scripted(s Scenario, dir string, served Provider) Agent {
	return Agent{
		Name: ScriptedName, Image: "tools", DefaultModel: ScriptedName, Provider: served,
		Command:   func(c Call) (Command, error) { return s.command(dir, c) },
		NewReader: func(Call) Reader { return &scriptedReader{name: "the scripted agent"} },
	}
}

// command starts the helper on the part of the scenario that is meant for this
// call, with the texts that it takes from files. It fails without such a part.
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

// Record is one line of JSON on the scripted agent's standard output. Lines
// that are no Record (a raw step writes them) are to be passed over.
type Record struct {
	Type string `json:"type"` // one of the Record constants

	// With RecordInit.
	Role      string `json:"role,omitempty"`
	Phase     int    `json:"phase,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Session   string `json:"session,omitempty"`

	// With RecordTool: the step's key, as write or run.
	Tool string `json:"tool,omitempty"`
	// What is said or printed; with RecordTool the path or the command.
	Text string `json:"text,omitempty"`

	// With RecordResult, which is the last line of a call that ended properly.
	Status string `json:"status,omitempty"` // StatusSuccess or StatusError
	Error  string `json:"error,omitempty"`  // why it is an error
	// EndAway or EndLogin: whose fault the error is.
	Trouble  End           `json:"trouble,omitempty"`
	Usage    []ScriptUsage `json:"usage,omitempty"`
	Requests *int64        `json:"requests,omitempty"` // model requests, over all models
}

// The types of record, and what a RecordResult can say.
const (
	RecordInit    = "init"
	RecordMessage = "message"
	RecordTool    = "tool"
	RecordOutput  = "output"
	RecordResult  = "result"

	StatusSuccess = "success"
	StatusError   = "error"
)

// scriptedReader follows the helper's output: one Record a line, among
// raw lines that a scenario prints on purpose.
type scriptedReader struct {
	name      string // of the agent
	needsTool bool   // it does nothing of its task without a tool
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

// Result implements Reader. No request is asked for: a script that reports no usage is
// still played to its end.
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
