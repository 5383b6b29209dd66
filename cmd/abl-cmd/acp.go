//go:build linux

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"abl/internal/proc"
	"abl/roles/agent"
)

const (
	acpLine = 16 << 20 // bytes of the longest message of an agent
	acpText = 4 << 10  // bytes of text after which the next complete line ends a record

	exitStopped  = 128 + int(syscall.SIGTERM)
	leftoverTime = time.Second // to read the remaining output of an ended agent
)

// acpMessage is a request, a response or a notification of JSON-RPC 2.0.
type acpMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *acpError       `json:"error,omitempty"`
}

// acpError is the error of a request. Agents put the reason into Message or into Data.
type acpError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *acpError) Error() string {
	if len(e.Data) > 0 && string(e.Data) != "null" {
		return fmt.Sprintf("%s: %.300s", e.Message, e.Data)
	}
	return e.Message
}

// acpUpdate is the content of a session/update.
type acpUpdate struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"` // an object for a message, a list for a tool call
	ID      string          `json:"toolCallId"`
	Tool    string          `json:"kind"`
	Title   string          `json:"title"`
	Status  string          `json:"status"`
	Input   map[string]any  `json:"rawInput"`
}

// acpOption is a setting of a session that its agent offers.
type acpOption struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Current  any    `json:"currentValue"`
	Options  []struct {
		Value string `json:"value"`
	} `json:"options"`
}

// acpClient is a connection to an agent.
type acpClient struct {
	in      io.Writer
	from    *bufio.Scanner
	records func(agent.Record)
	sent    int
	said    strings.Builder
	tools   map[string]acpUpdate // tool calls without a record, by id
}

// askAgent runs abl-acp COMMAND, a client of the Agent Client Protocol. It starts the agent with sh,
// sends the prompt from standard input, and prints the agent's actions as records of the scripted
// agent.
func askAgent(ctx context.Context, s started) int {
	if len(s.args) != 1 {
		return refuse(s.as, errors.New("takes one argument, the command that starts an agent"))
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return refuse(s.as, err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	c := acpClient{tools: map[string]acpUpdate{}}
	c.records = func(r agent.Record) { _ = out.Encode(r) } // if writing fails, the call has no result
	end, err := c.start(ctx, s.args[0])
	if err != nil {
		return refuse(s.as, err)
	}
	err = c.ask(string(prompt))
	how := end() // actions after the response are not part of the call
	switch {
	case ctx.Err() != nil:
		return exitStopped
	case err == nil:
		c.records(agent.Record{Type: agent.RecordResult, Status: agent.StatusSuccess})
		return 0
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the agent exited before it responded, %s", how)
	}
	c.records(agent.Record{Type: agent.RecordResult, Status: agent.StatusError, Error: err.Error()})
	return 1
}

// start starts the agent. end stops it and returns how it ended.
func (c *acpClient) start(ctx context.Context, shell string) (end func() string, err error) {
	in, toAgent, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromAgent, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.in, c.from = toAgent, bufio.NewScanner(fromAgent)
	c.from.Buffer(nil, acpLine)
	cmd := exec.Command("sh", "-c", shell)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ctx, stop := context.WithCancel(ctx)
	how := make(chan string, 1)
	go func() {
		code, err := proc.Run(ctx, cmd, agent.StopGrace)
		in.Close()
		out.Close()
		_ = fromAgent.SetReadDeadline(time.Now().Add(leftoverTime)) // its children may keep the output open
		if cmd.Process == nil {
			how <- err.Error()
			return
		}
		how <- fmt.Sprintf("with exit code %d", code)
	}()
	return func() string { stop(); return <-how }, nil
}

// ask runs one session: it sends the prompt and processes updates until the response.
func (c *acpClient) ask(prompt string) error {
	type object = map[string]any
	if err := c.call("initialize", object{
		"protocolVersion":    1,
		"clientCapabilities": object{"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		"clientInfo":         object{"name": "abl", "version": "1"},
	}, nil); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var session struct {
		ID      string      `json:"sessionId"`
		Options []acpOption `json:"configOptions"`
	}
	if err := c.call("session/new", object{"cwd": dir, "mcpServers": []any{}}, &session); err != nil {
		return err
	}
	c.records(agent.Record{Type: agent.RecordInit, Session: session.ID})
	for _, o := range session.Options {
		value := o.choice()
		if value == "" || value == o.Current {
			continue
		}
		set := object{"sessionId": session.ID, "configId": o.ID, "value": value}
		if err := c.call("session/set_config_option", set, nil); err != nil {
			return err
		}
	}
	var answer struct {
		Reason string `json:"stopReason"`
	}
	err = c.call("session/prompt", object{"sessionId": session.ID, "prompt": []object{{"type": "text", "text": prompt}}},
		&answer)
	c.pause()
	if err == nil && answer.Reason != "end_turn" {
		err = fmt.Errorf("it ended with the stop reason %q", answer.Reason)
	}
	return err
}

// choice returns the value of an option for this call, "" to keep the current one.
func (o acpOption) choice() string {
	var wanted []string
	switch o.Category {
	case "model":
		wanted = []string{os.Getenv("ABL_MODEL")}
	case "thought_level":
		effort := os.Getenv("ABL_EFFORT")
		wanted = []string{effort}
		if effort == "max" {
			wanted = []string{"max", "xhigh", "high"}
		}
	}
	for _, want := range wanted {
		for _, has := range o.Options {
			if want != "" && (has.Value == want || o.Category == "model" && strings.HasSuffix(has.Value, "/"+want)) {
				return has.Value
			}
		}
	}
	return ""
}

// send writes a message to the agent. It returns io.EOF if the agent has ended.
func (c *acpClient) send(m acpMessage) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if errors.Is(err, syscall.EPIPE) {
		return io.EOF
	}
	return err
}

// call sends a request and handles messages of the agent until the response. It returns io.EOF if
// the agent ends before.
func (c *acpClient) call(method string, params, result any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c.sent++
	id := fmt.Sprint(c.sent)
	if err := c.send(acpMessage{ID: json.RawMessage(id), Method: method, Params: data}); err != nil {
		return err
	}
	for c.from.Scan() {
		var m acpMessage
		switch err := json.Unmarshal(c.from.Bytes(), &m); {
		case err != nil: // some agents print notices on standard output
		case m.Method == "session/update":
			c.update(m.Params)
		case m.Method != "" && m.ID != nil:
			if err := c.send(response(m)); err != nil {
				return err
			}
		case m.Method != "" || string(m.ID) != id:
		case m.Error != nil:
			return fmt.Errorf("%s: %w", method, m.Error)
		case result != nil:
			return json.Unmarshal(m.Result, result)
		default:
			return nil
		}
	}
	if err := c.from.Err(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return io.EOF
}

// response returns the response to a request of the agent. It grants every permission, because the
// container limits the agent.
func response(m acpMessage) acpMessage {
	var asked struct {
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	_ = json.Unmarshal(m.Params, &asked) // a request without options is refused
	for _, kind := range []string{"allow_always", "allow_once"} {
		for _, o := range asked.Options {
			if m.Method == "session/request_permission" && o.Kind == kind {
				result, _ := json.Marshal(map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": o.ID}})
				return acpMessage{ID: m.ID, Result: result}
			}
		}
	}
	return acpMessage{ID: m.ID, Error: &acpError{Code: -32601, Message: "Method not found"}}
}

// update writes the records for an update. It ignores an update with an unexpected form.
func (c *acpClient) update(params json.RawMessage) {
	var p struct {
		Update acpUpdate `json:"update"`
	}
	var odd *json.UnmarshalTypeError
	if err := json.Unmarshal(params, &p); err != nil && !errors.As(err, &odd) {
		return
	}
	switch u := p.Update; u.Kind {
	case "agent_message_chunk":
		c.said.WriteString(textOf(u.Content))
		if c.said.Len() > acpText && strings.HasSuffix(c.said.String(), "\n") {
			c.pause()
		}
	case "tool_call":
		c.tools[u.ID] = u
		c.tool(u)
	case "tool_call_update":
		c.tool(u)
	}
}

// pause writes a record of the agent's text since the last record.
func (c *acpClient) pause() {
	if text := strings.TrimSpace(c.said.String()); text != "" {
		c.records(agent.Record{Type: agent.RecordMessage, Text: text})
	}
	c.said.Reset()
}

// tool writes a record of a tool call when its input is known, and a record of its result.
func (c *acpClient) tool(u acpUpdate) {
	known, unrecorded := c.tools[u.ID]
	over := u.Status == "completed" || u.Status == "failed"
	if len(u.Input) > 0 {
		known.Input = u.Input
	}
	known.Tool, known.Title = cmp.Or(known.Tool, u.Tool), cmp.Or(u.Title, known.Title)
	if unrecorded && (len(known.Input) > 0 || over) {
		c.pause()
		c.records(agent.Record{Type: agent.RecordTool, Tool: cmp.Or(known.Tool, "tool"), Text: known.object()})
		delete(c.tools, u.ID)
	} else if unrecorded {
		c.tools[u.ID] = known
	}
	if text := textOf(u.Content); over && text != "" {
		c.records(agent.Record{Type: agent.RecordOutput, Text: text})
	} else if u.Status == "failed" {
		c.records(agent.Record{Type: agent.RecordOutput, Text: "failed"})
	}
}

// object returns the object of a tool call: a command, a path, or else the agent's title.
func (u acpUpdate) object() string {
	names := []string{"command", "file_path", "filePath", "absolute_path", "path", "pattern", "query"}
	for name := range slices.Values(names) {
		if text, _ := u.Input[name].(string); text != "" {
			return text
		}
	}
	return u.Title
}

// textOf returns the text of a content block, or of a list of them.
func textOf(content json.RawMessage) string {
	type block struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	var all []block
	if json.Unmarshal(content, &all) != nil {
		all = make([]block, 1)
		_ = json.Unmarshal(content, &all[0]) // a block without text has no effect
	}
	text := ""
	for _, b := range all {
		if text += b.Text; len(b.Content) > 0 {
			text += textOf(b.Content)
		}
	}
	return text
}
