package modelserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
)

// wire is an API other than Gemini's. A conversation uses only the client's shell tool: the
// server translates the script's Gemini functions into commands.
type wire interface {
	spoken
	asked() (model string, stream bool)
	rules() rules
	calls() bool // whether the client has declared its shell; side questions of a client have none
	// say writes a response, as events if the client asked for a stream.
	say(w http.ResponseWriter, a said)
}

// said is a response independent of the API.
type said struct {
	id, model, text string
	command         string // for the client's shell; "" in the last response
	unended         bool   // without the end that the API requires
	stream          bool
	usage           Usage
}

// wireOf returns a new conversation for the API that a path belongs to, or nil.
func wireOf(path string) wire {
	switch {
	case strings.HasSuffix(path, "/v1/messages"):
		return &messages{}
	case strings.HasSuffix(path, "/responses"):
		return &responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		return &chat{}
	}
	return nil
}

// wire responds to a request of such an API.
func (s *Server) wire(w http.ResponseWriter, r *http.Request, e *entry, c wire) *apiError {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, c)
	}
	if err != nil {
		return invalid("the request is not JSON of this API: %v", err)
	}
	if fault := c.rules().strict(r, body); fault != nil {
		return fault
	}
	a := said{text: "Done.", id: "aside"}
	a.model, a.stream = c.asked()
	e.Model, e.Method = a.model, path.Base(r.URL.Path)
	if !c.calls() {
		e.Did = a.id
		if s.Aside != nil {
			script, err := s.Aside(c.prompt())
			if err != nil {
				return invalid("%v", err)
			}
			a.text, a.usage = script.Final, script.Usage
		}
		c.say(w, a)
		return nil
	}
	script, at, all, fault := s.pick(c, e)
	if fault != nil {
		return fault
	}
	a.id, a.usage = fmt.Sprintf("%s-%d", strings.ReplaceAll(script.Name, " ", "-"), at+1), script.Usage.part(at, all)
	if at < len(script.Turns) {
		turn := script.Turns[at]
		e.Did, a.text, a.command = turn.Name, turn.Text, shell(turn)
		c.say(w, a)
		return nil
	}
	e.Did, a.text = string(script.End), script.Final
	switch script.End {
	case Refuse:
		return invalid("the script ends this call with an error")
	case NoAnswer:
		<-r.Context().Done()
		return nil
	case Cut:
		a.unended = true
	}
	c.say(w, a)
	return nil
}

// shell returns a command with the effect of a Gemini CLI function.
func shell(t Turn) string {
	arg := func(name string) string {
		s, _ := t.Args[name].(string)
		return s
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	switch t.Name {
	case "run_shell_command":
		return arg("command")
	case "read_file":
		return "cat " + quote(arg("file_path"))
	case "write_file":
		file := arg("file_path")
		return fmt.Sprintf("mkdir -p %s && printf %%s %s | base64 -d > %s",
			quote(path.Dir(file)), base64.StdEncoding.EncodeToString([]byte(arg("content"))), quote(file))
	}
	return "echo " + quote("no such function: "+t.Name)
}

// input returns the tokens that the model read, output those that it wrote, with its thoughts.
func (u Usage) input() int64  { return u.Prompt + u.Tool }
func (u Usage) output() int64 { return u.Candidates + u.Thoughts }

// stream starts a stream of server-sent events. The event names are the types, if the API names
// its events.
func stream(w http.ResponseWriter) func(name string, v map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(name string, v map[string]any) {
		if name != "" {
			v["type"] = name
			fmt.Fprintf(w, "event: %s\n", name)
		}
		data, err := json.Marshal(v)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
	}
}

// pieces returns the halves of a text, because a model streams its text in pieces.
func pieces(text string) []string {
	runes := []rune(text)
	return []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}

// texts returns the texts of a content, which is a string or a list of parts.
func texts(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one + "\n"
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // other content has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}

// declared lists the functions of a client. Each API has its own field for the name.
type declared []struct {
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// shell returns the name of the client's shell, "" if it has none.
func (d declared) shell() string {
	for _, name := range []string{"bash", "run_shell_command", "Shell", "Bash", "run_commands"} {
		if d.has(name) {
			return name
		}
	}
	return ""
}

// arguments returns the arguments of that shell for a command. Kimi's takes no others.
func (d declared) arguments(command string) string {
	if d.shell() != "Bash" {
		return bash(command)
	}
	args, _ := json.Marshal(map[string]string{"command": command, "description": "scripted"}) // strings always encode
	return string(args)
}

func (d declared) has(name string) bool {
	for _, t := range d {
		if t.Name == name || t.Function.Name == name {
			return true
		}
	}
	return false
}
