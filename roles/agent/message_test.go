package agent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// messagesIn returns the messages of an output, including its end.
func messagesIn(r Reader, stdout []byte) (all []Message) {
	for line := range bytes.Lines(stdout) {
		all = append(all, r.Line(bytes.TrimSuffix(line, []byte("\n")), false)...)
	}
	return append(all, r.Line(nil, false)...)
}

// transcript returns messages as lines, with details after the text.
func transcript(all []Message) string {
	var b strings.Builder
	for _, m := range all {
		at := "-"
		if !m.Time.IsZero() {
			at = m.Time.Format(time.TimeOnly)
		}
		fmt.Fprintf(&b, "%s %s: %s\n", at, m.Kind, m.Text)
		for line := range strings.Lines(m.Detail) {
			fmt.Fprintf(&b, "\t%s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return b.String()
}

// TestMessagesOfSamples checks the messages of each real output: s for text, c for a tool call, r
// for a result. Outputs without a response of a model have no messages.
func TestMessagesOfSamples(t *testing.T) {
	want := map[string]string{
		"gemini/fail-e500_after-streamjson": "c", "gemini/fail-maxturns-streamjson": "crcrcr", "gemini/loopdetected-streamjson": "crcrcrcr",
		"gemini/maxtok-streamjson": "s", "gemini/ok-streamjson": "ccrs", "gemini/sigterm-streamjson": "c",
		"claude/ok-streamjson":  "crcrs",
		"codex/fail-e401_after": "c", "codex/fail-e500_after": "c", "codex/fail-failedevent": "ccrssss", "codex/fail-nofinish": "ccrssss", "codex/ok-json": "ccrs",
		"copilot/fail-e429x2": "ccrs", "copilot/fail-e500_after": "c", "copilot/ok-json": "ccrs", "copilot/ok-usagefile": "ccrs", "copilot/ok-used": "ccrs", "copilot/sigterm": "c",
	}
	for _, a := range clis {
		for _, file := range samplesOf(t, a.Name) {
			t.Run(a.Name+"/"+file, func(t *testing.T) {
				kinds := ""
				for _, m := range messagesIn(a.NewReader(Call{}), sampleOf(t, a.Name, file)) {
					kinds += map[MessageKind]string{Said: "s", Called: "c", Returned: "r"}[m.Kind]
				}
				if kinds != want[a.Name+"/"+file] {
					t.Errorf("transcript: got %q, want %q", kinds, want[a.Name+"/"+file])
				}
			})
		}
	}
}

// TestTranscripts checks one good run of each CLI against testdata/transcripts.
func TestTranscripts(t *testing.T) {
	for name, file := range map[string]string{"gemini": "ok-streamjson", "claude": "ok-streamjson", "codex": "ok-json", "copilot": "ok-used"} {
		t.Run(name, func(t *testing.T) {
			want := string(sampleOf(t, "transcripts", name))
			if diff := cmp.Diff(want, transcript(messagesIn(found(name).NewReader(Call{}), sampleOf(t, name, file)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	own := Custom(Agent{Name: "mine"}, Settings{Usage: "usage"})
	for _, tt := range []struct {
		name   string
		agent  Agent
		stdout string
		want   string
	}{
		{"scripted", offline, `{"type":"message","text":"a\nb"}` + "\n" + `{"type":"tool","tool":"run","text":"ls\n-a"}` + "\n" + `{"type":"output","text":"x"}` + "\nnoise\n" + `{"type":"output","text":"y"}` + "\n" + `{"type":"result"}`,
			"- said: a\nb\n- call: run ls -a\n\tls\n\t-a\n- result: \n\tx\n\ty\n"},
		{"scripted, cut off", offline, `{"type":"output","text":"x"}`, "- result: \n\tx\n"},
		{"words that nothing follows", gemini, `{"type":"message","role":"assistant","content":"I be"}` + "\n" + `{"type":"message","role":"assistant","content":"gin"}`, "- said: I begin\n"},
		{"a tool that fails", gemini, `{"type":"tool_result","status":"error","error":{"message":"no such file"}}`, "- result: failed\n\tno such file\n"},
		{"an odd time", gemini, `{"type":"tool_result","status":"error","timestamp":7}`, "- result: failed\n"},
		{"content in parts", claude, `{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image"},7,{"type":"text","text":"b"}]}]}}`, "- result: failed\n\tab\n"},
		{"content of no form", claude, `{"type":"user","message":{"content":[{"type":"tool_result","content":{"text":"a"}}]}}`, ""},
		{"another's words", claude, `{"type":"assistant","parent_tool_use_id":"x","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":" "}]}}`, "- said: a\n"},
		{"changed files", codex, `{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a"},{"path":"b"}]}}`, "- call: file_change a\n\ta\n\tb\n"},
		{"a command that fails", codex, `{"type":"item.completed","item":{"type":"command_execution","exit_code":2,"aggregated_output":"x"}}`, "- result: failed\n\tx\n"},
		{"a tool of copilot's that fails", Copilot(""), `{"type":"tool.execution_complete","data":{"success":false,"error":{"message":"no"}}}`, "- result: failed\n\tno\n"},
		{"lines of one's own", own, "working\n\n{\"usage\":1}\n  done \n", "- said: working\n- said:   done\n"},
		{"opencode's records", own, `{"type":"step_start","part":{"type":"step-start"}}` + "\n" +
			`{"type":"tool_use","part":{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a"}}}` + "\n" +
			`{"type":"text","part":{"type":"text","text":"Done."}}`, "- call: bash ls\n\tcommand: ls\n- result: \n\ta\n- said: Done.\n"},
		{"qwen's records", own, `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi."},{"type":"tool_use","name":"run_shell_command","input":{"command":"ls"}}]}}` + "\n" +
			`{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":[{"type":"text","text":"no"}]}]}}` + "\n" +
			`{"type":"result","result":"Hi."}`, "- said: Hi.\n- call: run_shell_command ls\n\tcommand: ls\n- result: failed\n\tno\n"},
		{"pi's records", own, `{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"Do it."}]}}` + "\n" +
			`{"type":"message_update","message":{"role":"assistant","content":[{"type":"text","text":"H"}]}}` + "\n" +
			`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Hi."},{"type":"toolCall","name":"write","arguments":{"filePath":"a"}}]}}` + "\n" +
			`{"type":"tool_execution_start","toolName":"write","args":{"filePath":"a"}}` + "\n" +
			`{"type":"tool_execution_end","toolName":"write","result":{"content":[{"type":"text","text":"ok"}]},"isError":false}` + "\n" +
			`{"type":"turn_end","message":{"role":"assistant","content":[{"type":"text","text":"Hi."}]}}`,
			"- said: Hi.\n- call: write a\n\tfilePath: a\n\tpath: a\n- result: \n\tok\n"},
		{"a program", Program("p", Command{}), "x\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, transcript(messagesIn(tt.agent.NewReader(Call{}), []byte(tt.stdout)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A message without an end is bounded, too.
func TestPiecesAreBounded(t *testing.T) {
	r := offline.NewReader(Call{}).(*scriptedReader)
	for range 1000 {
		r.Line([]byte(`{"type":"output","text":"`+strings.Repeat("x", 1000)+`"}`), false)
	}
	if len(r.text) > maxMessage {
		t.Errorf("text in memory: got %d bytes, want at most %d", len(r.text), maxMessage)
	}
}

// No message grows with the output of an agent, in one line or in many.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", MaxLine/4)
	pieces := strings.Repeat(`{"type":"output","text":"`+strings.Repeat("x", 1000)+`"}`+"\n", 1000)
	for name, tt := range map[string]struct {
		agent  Agent
		stdout string
		lost   string
	}{
		"a long line":  {claude, `{"type":"assistant","message":{"content":[{"type":"text","text":"` + long + `"}]}}`, "4128768 more bytes"},
		"an argument":  {gemini, `{"type":"tool_use","tool_name":"write_file","parameters":{"a":"` + long + `"}}`, "4128771 more bytes"},
		"many outputs": {offline, pieces, "935464 more bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			all := messagesIn(tt.agent.NewReader(Call{}), []byte(tt.stdout))
			if len(all) != 1 || len(transcript(all)) > maxMessage+1000 || !strings.HasSuffix(all[0].Text+all[0].Detail, "\n… "+tt.lost) {
				t.Errorf("transcript: got %d messages, %d bytes, end %.100q, want 1, at most %d, end %q",
					len(all), len(transcript(all)), transcript(all)[max(0, len(transcript(all))-100):],
					maxMessage+1000, tt.lost)
			}
		})
	}
}
