package modelserver

import (
	"io"
	"strings"
	"testing"
)

// A tool call in the format of each API.
const (
	useTurn   = `{"role":"assistant","content":[{"type":"tool_use","id":"t1"}]}`
	callItem  = `{"type":"function_call","call_id":"c1"}`
	callsTurn = `{"role":"assistant","tool_calls":[{"id":"c1"}]}`
)

// Each API sends the script's function as a command for the client's shell, then the end with the
// token counts of the script.
func TestEachAPIPlaysTheScript(t *testing.T) {
	source := func(prompt string) (Script, error) {
		if !strings.Contains(prompt, "the mark") {
			t.Errorf("prompt: got %q, want one with %q", prompt, "the mark")
		}
		return Script{
			Name:  "builder",
			Turns: []Turn{{Name: "write_file", Args: map[string]any{"file_path": "/w/it's", "content": "x"}}},
			Final: "Done.",
			End:   Stop,
			Usage: Usage{Prompt: 100, Candidates: 10, Thoughts: 4, Cached: 50},
		}, nil
	}
	const command = `mkdir -p '/w' \u0026\u0026 printf %s eA== | base64 -d \u003e '/w/it`
	for _, tt := range []struct{ path, tools, first, result, end string }{
		{
			"/v1/messages",
			`[{"name":"Bash"}]`,
			`{"role":"user","content":"the mark"}`,
			useTurn + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}`,
			`"output_tokens":7`,
		},
		{
			"/v1/responses",
			`[{"name":"exec_command"}]`,
			`{"role":"user","content":[{"text":"the mark"}]}`,
			callItem + `,{"type":"function_call_output","call_id":"c1"}`,
			`"reasoning_tokens":2`,
		},
		{
			"/v1/responses",
			`[{"name":"bash"}]`,
			`{"role":"user","content":[{"text":"the mark"}]}`,
			callItem + `,{"type":"function_call_output","call_id":"c1"}`,
			`"reasoning_tokens":2`,
		},
		{
			"/v1/chat/completions",
			`[{"function":{"name":"bash"}}]`,
			`{"role":"user","content":"the mark"}`,
			callsTurn + `,{"role":"tool","tool_call_id":"c1","content":"ok"}`,
			`"completion_tokens":7`,
		},
	} {
		t.Run(tt.path, func(t *testing.T) {
			list, more := "messages", ""
			if strings.HasSuffix(tt.path, "responses") {
				list = "input"
			} else if strings.HasSuffix(tt.path, "/messages") {
				more = `"max_tokens":99,`
			}
			say := func(stream, tools string, all ...string) string {
				body := `{"model":"m",` + more + `"stream":` + stream + `,"tools":` + tools + `,"` + list + `":[` + strings.Join(all, ",") + `]}`
				data, err := io.ReadAll(ask(t, &Server{Source: source, Log: io.Discard}, "/p"+tt.path, body).Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			for _, stream := range []string{"true", "false"} {
				plain := strings.NewReplacer(`\\u`, `\u`, `\\\\`, `\\`)
				if got := plain.Replace(say(stream, tt.tools, tt.first)); !strings.Contains(got, command) {
					t.Errorf("%s: got %s, want %s in it", tt.path, got, command)
				}
				if got := say(stream, tt.tools, tt.first, tt.result); !strings.Contains(got, tt.end) || !strings.Contains(got, "ne.") {
					t.Errorf("%s: got the end %s, want %s and the text in it", tt.path, got, tt.end)
				}
				if got := say(stream, "[]", tt.first); !strings.Contains(got, "ne.") {
					t.Errorf("%s, side question: got %s, want the text in it", tt.path, got)
				}
			}
		})
	}
}

// A client whose models write JavaScript gets the command as JavaScript, and its result counts as
// executed.
func TestResponsesInCode(t *testing.T) {
	source := func(string) (Script, error) {
		return Script{
			Name:  "builder",
			Turns: []Turn{{Name: "run_shell_command", Args: map[string]any{"command": "ls"}}},
			Final: "Done.",
			End:   Stop,
		}, nil
	}
	const tools = `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}`
	for input, want := range map[string]string{
		tools: `"input":"const ran = await tools.exec_command({\"cmd\":\"ls\"`,
		tools + `,{"type":"custom_tool_call","call_id":"c1"},{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`: `"text":"Done."`,
	} {
		body := `{"model":"m","stream":true,"input":[` + input + `,{"role":"user","content":[{"text":"the mark"}]}]}`
		data, err := io.ReadAll(ask(t, &Server{Source: source, Log: io.Discard}, "/v1/responses", body).Body)
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("response: got %s, error %v, want %s in it", data, err, want)
		}
	}
}
