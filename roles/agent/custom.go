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

// Settings are the settings of the user's own agent. sh runs Command in the role's workspace, with
// Env, which has no secrets. The prompt is on standard input and in the file that ABL_PROMPT names.
// ACP is a command that supports the Agent Client Protocol instead. Usage is the dotted path to the
// tokens in a JSON line of the output, or "".
type Settings struct {
	Command, ACP string
	Env          map[string]string
	Usage        string
}

// Custom completes the user's own agent.
func Custom(a Agent, set Settings) Agent {
	a.Image, a.DefaultModel, a.Own = cmp.Or(a.Image, "tools"), cmp.Or(a.DefaultModel, a.Name), true
	a.Effort = plainEffort
	argv := []string{"sh", "-c", set.Command}
	if set.ACP != "" {
		argv = []string{helper.Bin + "/" + helper.HelperACP, set.ACP}
	}
	a.Command = func(c Call) (Command, error) {
		all := map[string]string{"HOME": helper.Home, "NO_COLOR": "1"}
		maps.Copy(all, set.Env)
		maps.Copy(all, map[string]string{"ABL_PROMPT": c.Prompt, "ABL_MODEL": c.Model, "ABL_EFFORT": c.Effort,
			"ABL_ROLE": c.Role})
		return Command{Argv: argv, Env: all}, nil
	}
	if set.ACP != "" {
		a.NewReader = func(Call) Reader { return &scriptedReader{name: a.Name, needsTool: true} }
		return a
	}
	a.NewReader = func(c Call) Reader {
		return &customReader{name: a.Name, model: cmp.Or(c.Model, a.DefaultModel), path: set.Usage}
	}
	return a
}

// OwnProvider returns the provider of the user's own agent that uses api. name is the agent's,
// keyVar the variable of its key, which may be "", and base the address, "" for the vendor's.
func OwnProvider(name, api, keyVar, base string) Provider {
	return Provider{API: api, KeyVar: keyVar, BaseVar: "agents." + name + ".base", Base: base, Own: true}
}

// Variables returns the environment variables with a gateway's address for a call, at, and token.
func (p Provider) Variables(at, token string) []string {
	if !p.Own {
		return append([]string{p.KeyVar + "=" + token, p.BaseVar + "=" + at}, strings.Fields(p.ContainerVars)...)
	}
	if strings.HasPrefix(p.API, "openai") { // like OPENAI_BASE_URL
		at += "/v1"
	}
	return []string{"ABL_TOKEN=" + token, "ABL_BASE_URL=" + at}
}

// customReader reads the output of any agent: JSON records in common forms, the tokens at a path,
// and plain text.
type customReader struct {
	name, model, path string
	used              figures // of the lines so far
	last, failure     string  // the last line of text, and the last error in a record
	unread            speech  // JSON of an unknown form: the answer, if there is no other
	follower
}

// Line implements Reader. A line that is not JSON is the agent's text.
func (r *customReader) Line(line []byte, cut bool) []Message {
	text := strings.TrimSpace(string(line))
	if cut || text == "" {
		return nil
	}
	var rec map[string]any
	if line[0] != '{' || json.Unmarshal(line, &rec) != nil {
		return r.plain(line, text)
	}
	r.at = textAt(rec, "timestamp")
	if r.path != "" {
		r.count(line)
	}
	all := r.read(rec)
	switch {
	case len(all) > 0:
	case r.path == "":
		return r.plain(line, text)
	default:
		r.unread.say(text + "\n")
	}
	return all
}

// plain adds a line of text.
func (r *customReader) plain(line []byte, text string) []Message {
	r.say(text + "\n")
	r.last = label(text, maxReason)
	return r.message(Said, strings.TrimRightFunc(string(line), unicode.IsSpace), "")
}

// count reads the tokens at the path.
func (r *customReader) count(line []byte) {
	at := json.RawMessage(line)
	for name := range strings.SplitSeq(r.path, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return
		}
		at = object[name]
	}
	var used figures
	if bytes.HasPrefix(at, []byte("{")) && json.Unmarshal(at, &used) == nil {
		r.used = r.used.with(used)
	}
}

// Result implements Reader. Only the exit code decides about success.
func (r *customReader) Result(exit int) Result {
	res := Result{Finished: exit == 0, Requests: -1, Said: cmp.Or(r.said(), r.unread.said())}
	if exit != 0 {
		res.Reason = r.name + " failed with " + exitCode(exit)
		switch {
		case r.failure != "":
			res.Reason += ": " + r.failure
		case r.last != "":
			res.Reason += "; its last line was: " + r.last
		}
	}
	if r.used != nil {
		res.Usage = usagesOf(map[string]figures{r.model: r.used}, customNames.count)
	}
	return res
}

// customNames are the usual names of the figures.
var customNames = names{"input_tokens prompt_tokens", "cached_tokens", "output_tokens completion_tokens",
	"reasoning_tokens"}
