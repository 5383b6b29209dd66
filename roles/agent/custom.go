package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"unicode"

	"abl/internal/helper"
)

// Custom completes an agent of the project's own, out of a few lines of its settings.
// shell is run by sh in the role's workspace, with env, which holds no secrets; it finds
// the task on standard input, and in the file that ABL_PROMPT names. usage is the dotted
// path to the tokens in a JSON line of its output, "" for none.
func Custom(a Agent, shell string, env map[string]string, usage string) Agent {
	a.Image, a.DefaultModel = cmp.Or(a.Image, "tools"), cmp.Or(a.DefaultModel, a.Name)
	a.Effort = plainEffort
	a.Command = func(c Call) (Command, error) {
		all := map[string]string{"HOME": helper.Home, "NO_COLOR": "1"}
		maps.Copy(all, env)
		maps.Copy(all, map[string]string{"ABL_PROMPT": c.Prompt, "ABL_MODEL": c.Model, "ABL_EFFORT": c.Effort, "ABL_ROLE": c.Role})
		return Command{Argv: []string{"sh", "-c", shell}, Env: all}, nil
	}
	a.NewReader = func(c Call) Reader {
		return &customReader{name: a.Name, model: cmp.Or(c.Model, a.DefaultModel), path: usage}
	}
	return a
}

// customReader knows nothing of an agent's output but where its tokens are.
type customReader struct {
	name, model, path string
	used              figures // of the lines so far
	last              string
	speech
	messages
}

// Line implements Reader. What is no JSON is what the agent says.
func (r *customReader) Line(line []byte, cut bool) []Message {
	text := strings.TrimSpace(string(line))
	if cut || text == "" {
		return nil
	}
	if r.path == "" || line[0] != '{' {
		r.say(text + "\n")
		r.last = label(text, maxReason)
		return r.message(Said, strings.TrimRightFunc(string(line), unicode.IsSpace), "")
	}
	at := json.RawMessage(line)
	for name := range strings.SplitSeq(r.path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return nil
		}
		at = object[name]
	}
	var used figures
	if bytes.HasPrefix(at, []byte("{")) && json.Unmarshal(at, &used) == nil {
		r.used = r.used.with(used)
	}
	return nil
}

// Result implements Reader. All that is known of success is the exit code.
func (r *customReader) Result(exit int) Result {
	res := Result{Finished: exit == 0, Requests: -1, Said: r.said()}
	if exit != 0 {
		res.Reason = r.name + " failed with " + exitCode(exit)
		if r.last != "" {
			res.Reason += "; its last line was: " + r.last
		}
	}
	if r.used != nil {
		res.Usage = usage(map[string]figures{r.model: r.used}, customNames.count)
	}
	return res
}

// customNames are those that services and tools have for the same figures.
var customNames = names{"input_tokens prompt_tokens", "cached_tokens", "output_tokens completion_tokens", "reasoning_tokens"}
