package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"abl/internal/helper"
	"abl/internal/tokens"
)

// Custom is an agent of the project's own, out of a few lines of its settings.
type Custom struct {
	Called  string
	Shell   string            // the command, for sh
	Env     map[string]string // without secrets
	Usage   string            // dotted path to the tokens in a JSON line of its output, "" for none
	Model   string            // the default
	Box     string            // the image that it is run in
	Service Provider          // zero for none
}

// Name is what the settings call it.
func (a Custom) Name() string { return a.Called }

// Image is the image that it is run in.
func (a Custom) Image() string { return cmp.Or(a.Box, "tools") }

// DefaultModel is what the settings say, or no model's name.
func (a Custom) DefaultModel() string { return cmp.Or(a.Model, a.Called) }

// Provider is the one whose gateway it is given, mostly nobody.
func (a Custom) Provider() Provider { return a.Service }

// Command runs the shell command in the role's workspace. It finds the task on
// standard input, and in the file that ABL_PROMPT names.
func (a Custom) Command(c Call) (Command, error) {
	model, err := model(a, c)
	if err != nil {
		return Command{}, err
	}
	env := map[string]string{"HOME": helper.Home, "NO_COLOR": "1"}
	maps.Copy(env, a.Env)
	maps.Copy(env, map[string]string{"ABL_PROMPT": c.Prompt, "ABL_MODEL": model, "ABL_ROLE": c.Role})
	return Command{Argv: []string{"sh", "-c", a.Shell}, Env: env}, nil
}

// NewReader reads what tokens it tells.
func (a Custom) NewReader(c Call) Reader {
	return &customReader{name: a.Called, model: cmp.Or(c.Model, a.DefaultModel()), path: a.Usage}
}

// customReader knows nothing of an agent's output but where its tokens are.
type customReader struct {
	name, model, path string
	tokens            *customTokens
	last              string
	speech
}

// customTokens are the names that services and tools use for the same figures.
type customTokens struct {
	Input     count `json:"input_tokens"`
	Prompt    count `json:"prompt_tokens"`
	Output    count `json:"output_tokens"`
	Completed count `json:"completion_tokens"`
	Cached    count `json:"cached_tokens"`
	Reasoning count `json:"reasoning_tokens"`
	Total     count `json:"total_tokens"`
}

// Line implements Reader. What is no JSON is what the agent says.
func (r *customReader) Line(line []byte, cut bool) string {
	text := strings.TrimSpace(string(line))
	if cut || text == "" {
		return ""
	}
	if r.path == "" || line[0] != '{' {
		r.say(text + "\n")
		r.last = label(text, maxReason)
		return label(text, maxAction)
	}
	if t, ok := tokensAt(line, r.path); ok {
		r.tokens = &t
	}
	return ""
}

// tokensAt finds the tokens of a JSON line at a dotted path; the last line that
// has any counts.
func tokensAt(line []byte, path string) (t customTokens, ok bool) {
	at := json.RawMessage(line)
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil || object[name] == nil {
			return t, false
		}
		at = object[name]
	}
	if !bytes.HasPrefix(at, []byte("{")) {
		return t, false
	}
	err := json.Unmarshal(at, &t)
	return t, err == nil
}

// Result implements Reader. All that is known of success is the exit code.
func (r *customReader) Result(exit int) Result {
	res := Result{Finished: exit == 0, Requests: -1}
	if exit != 0 {
		res.Reason = fmt.Sprintf("%s failed with exit code %d", r.name, exit)
		if r.last != "" {
			res.Reason += "; its last line was: " + r.last
		}
	}
	if t := r.tokens; t != nil {
		c := tokens.Count{
			Input: cmp.Or(t.Input.n, t.Prompt.n), Candidates: cmp.Or(t.Output.n, t.Completed.n), Cached: t.Cached.n, Thoughts: t.Reasoning.n,
		}
		c.Total = cmp.Or(t.Total.n, plus(c.Input, c.Candidates))
		res.Usage = []Usage{{Model: label(r.model, maxName), Count: c.WithoutThoughts()}}
	}
	return res
}
