package agent

import (
	"encoding/json"
	"errors"
	"fmt"

	"abl/internal/helper"
)

// ScriptedName is the name of the offline agent.
const ScriptedName = "scripted"

// scenarioFile is the name under which a call's script lies in helper.In.
const scenarioFile = "scenario.json"

// ErrNoCall means that a scenario does not say what to do in a call.
var ErrNoCall = errors.New("the scenario has no entry for this call")

// Scripted is the offline agent: abl's own helper plays the steps of a scenario
// inside the box, so that a phase can be tried without a model and without a key.
type Scripted struct {
	script Scenario
	dir    string // the scenario file's own folder, below which its texts are
	served Provider
}

// ServedBy is the same agent with a gateway to a provider, which the commands of
// its scenario may ask.
func (s Scripted) ServedBy(p Provider) Scripted {
	s.served = p
	return s
}

// Provider is whom the commands of its scenario may ask, mostly nobody.
func (s Scripted) Provider() Provider { return s.served }

// NewScripted is the agent that plays s; dir is the folder of the scenario file.
func NewScripted(s Scenario, dir string) Scripted { return Scripted{script: s, dir: dir} }

// Name is ScriptedName.
func (Scripted) Name() string { return ScriptedName }

// Image is the image without any CLI.
func (Scripted) Image() string { return "tools" }

// DefaultModel is what the configuration stands for when it names none; the
// scenario's usage names its models itself.
func (Scripted) DefaultModel() string { return ScriptedName }

// Command starts the helper on the part of the scenario that is meant for this
// call, with the texts that it takes from files. It is an error if there is none.
func (s Scripted) Command(c Call) (Command, error) {
	call, ok := s.script.Pick(c.Role, c.Phase, c.Iteration, c.Attempt)
	if !ok {
		return Command{}, fmt.Errorf("%w: the %s of phase %d, iteration %d, attempt %d",
			ErrNoCall, c.Role, c.Phase, c.Iteration, c.Attempt)
	}
	call, err := call.Resolve(s.dir)
	if err != nil {
		return Command{}, fmt.Errorf("cannot play the %s of phase %d, iteration %d: %w", c.Role, c.Phase, c.Iteration, err)
	}
	call.Step, call.Session = c.Step, c.Session
	script, err := json.Marshal(call)
	if err != nil {
		return Command{}, fmt.Errorf("internal error: cannot write a scenario: %w", err)
	}
	return Command{
		Argv:  []string{helper.Bin + "/" + helper.HelperAgent, helper.In + "/" + scenarioFile},
		Env:   map[string]string{"HOME": helper.Home, "ABL_MODEL": c.Model},
		Files: map[string][]byte{scenarioFile: script},
	}, nil
}

// NewReader reads the helper's records.
func (Scripted) NewReader(Call) Reader { return &scriptedReader{} }
