package agent

import "testing"

func TestLastSpeech(t *testing.T) {
	const tool = `{"type":"tool_use","tool_name":"write_file"}`
	for _, c := range []struct {
		name   string
		reader Reader
		lines  []string
		want   string
	}{
		{"gemini-in-pieces", gemini.NewReader(Call{}), []string{`{"type":"message","role":"user","content":"do"}`, `{"type":"message","role":"assistant","content":"I be","delta":true}`, `{"type":"message","role":"assistant","content":"gin","delta":true}`, tool, `{"type":"tool_result"}`, `{"type":"message","role":"assistant","content":"LEARNING: a\n","delta":true}`, `{"type":"message","role":"assistant","content":"LEARNING: b","delta":true}`, `{"type":"result","status":"success"}`}, "LEARNING: a\nLEARNING: b"},
		{"nothing-after-the-last-tool", gemini.NewReader(Call{}), []string{`{"type":"message","role":"assistant","content":"done"}`, tool, tool}, "done"},
		{"nothing-at-all", gemini.NewReader(Call{}), []string{tool}, ""},
		{"scripted", offline.NewReader(Call{}), []string{`{"type":"message","text":"first"}`, `{"type":"tool","tool":"write"}`, `{"type":"message","text":"a"}`, `{"type":"message","text":"b"}`}, "a\nb\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, line := range c.lines {
				c.reader.Line([]byte(line), false)
			}
			if got := c.reader.Result(0).Said; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
