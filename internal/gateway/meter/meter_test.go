package meter

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/usage"
)

// show prints a usage in the form of the log.
func show(u usage.Count) string {
	line, err := json.Marshal(u)
	if err != nil {
		return err.Error()
	}
	return strings.NewReplacer(`"`, "", "{", "", "}", "").Replace(string(line))
}

const nothing = "input:null,cached:null,candidates:null,thoughts:null,tool:null,total:null"

const messageStart = `event: message_start
data: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":5}}}}

`

var answers = []struct {
	name string
	api  API
	body string
	want string
}{
	{"gemini stream: the newest counts", Gemini,
		"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}],\"usageMetadata\":{\"promptTokenCount\":9,\"totalTokenCount\":9,\"cachedContentTokenCount\":3}}\r\n\r\n" +
			"data: {\"usageMetadata\":{\"promptTokenCount\":10,\"candidatesTokenCount\":4,\"thoughtsTokenCount\":2,\"toolUsePromptTokenCount\":1,\"totalTokenCount\":17,\"promptTokensDetails\":[{\"modality\":\"TEXT\",\"tokenCount\":10}]}}\r\n\r\n",
		"input:10,cached:3,candidates:4,thoughts:2,tool:1,total:17"},
	{"cut in the middle of a record", Gemini, "data: {\"usageMetadata\":{\"totalTokenCount\":9}}\n\ndata: {\"usageMetadata\":{\"promptTokenCount\":12,\"tot",
		"input:null,cached:null,candidates:null,thoughts:null,tool:null,total:9"},
	{"a record that is broken off and one that is cut", Gemini, "data: {\"usageMetadata\":{\"totalTokenCount\":9}}\n\ndata: {\"usageMetadata\":{\"totalTokenCount\":10,\n\ndata: {\"usageMetadata\":{\"x\":",
		"input:null,cached:null,candidates:null,thoughts:null,tool:null,total:9"},
	{"gemini document", Gemini, ` {"usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}}`,
		"input:7,cached:null,candidates:null,thoughts:null,tool:null,total:7"},
	{"gemini array", Gemini, "[{\"usageMetadata\":{\"promptTokenCount\":7}}\n,\r\n{\"usageMetadata\":{\"promptTokenCount\":8,\"cachedContentTokenCount\":0}}]",
		"input:8,cached:0,candidates:null,thoughts:null,tool:null,total:null"},
	{"what the model says is no usage", Gemini,
		`data: {"candidates":[{"content":{"parts":[{"text":"\"usageMetadata\":{\"promptTokenCount\":1}"},{"functionCall":{"args":{"usageMetadata":{"promptTokenCount":5}}}}]}}],"x":{"usageMetadata":{"promptTokenCount":6}},"usageMetadata/promptTokenCount":7}` + "\n\n",
		nothing},
	{"anthropic stream", Anthropic, messageStart + "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n",
		"input:115,cached:100,candidates:20,thoughts:null,tool:null,total:135,cache_written:5"},
	{"anthropic, cut", Anthropic, messageStart,
		"input:115,cached:100,candidates:null,thoughts:null,tool:null,total:null,cache_written:5"},
	{"anthropic document", Anthropic, `{"content":[{"text":"x"}],"usage":{"input_tokens":10,"output_tokens":3}}`,
		"input:10,cached:null,candidates:3,thoughts:null,tool:null,total:13"},
	{"responses stream", Responses,
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"usage\":{\"input_tokens\":1}}],\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":40},\"output_tokens\":9,\"output_tokens_details\":{\"reasoning_tokens\":4},\"total_tokens\":59}}}\n\n",
		"input:50,cached:40,candidates:5,thoughts:4,tool:null,total:59"},
	{"responses, no completed", Responses, "data: {\"type\":\"response.created\",\"response\":{}}\n\n", nothing},
	{"chat stream", Chat,
		"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7,\"completion_tokens_details\":{\"reasoning_tokens\":9}}}\n\ndata: [DONE]\n\n",
		"input:5,cached:null,candidates:2,thoughts:9,tool:null,total:16"},
	{"a broken event hides no later one", Chat, "data: {\"choices\":[{\"delta\":{\"content\":\"\n\ndata: {\"usage\":{\"total_tokens\":7}}\n\n",
		"input:null,cached:null,candidates:null,thoughts:null,tool:null,total:7"},
	{"numbers that count nothing", Chat, `{"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"total_tokens":99999999999999999999}}`, nothing},
	{"a number that no sum holds", Anthropic, `{"usage":{"input_tokens":1000000000000000000,"cache_read_input_tokens":1000000000000000001,"output_tokens":9223372036854775807}}`,
		"input:1000000000000000000,cached:null,candidates:null,thoughts:null,tool:null,total:null"},
	{"details of another kind, and of details", Chat, `{"usage":{"x_details":{"cached_tokens":1},"prompt_tokens_details":{"cached_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}}`,
		"input:null,cached:2,candidates:null,thoughts:null,tool:null,total:null"},
	{"numbers as text", Chat, `{"usage":{"prompt_tokens":"12"}}`, nothing},
	{"html", Gemini, "<html>{\"usageMetadata\":{\"promptTokenCount\":1}}</html>", nothing},
	{"empty", Chat, "", nothing},
	{"not JSON", Gemini, "{]}}]],\"usageMetadata\":::{{", nothing},
	{"too deep to matter", Chat, `{"a":` + strings.Repeat("[", 200) + `"x",{"usage":{"total_tokens":1}}` + strings.Repeat("]", 200) + `,"usage":{"total_tokens":3}}`,
		"input:null,cached:null,candidates:null,thoughts:null,tool:null,total:3"},
	{"a list in a list", Chat, `{"usage":[[{"total_tokens":1}]]}`, nothing},
	{"unknown API", "other", `{"usage":{"total_tokens":3}}`, nothing},
}

func TestUsage(t *testing.T) {
	for _, tt := range answers {
		m := New(tt.api)
		fmt.Fprint(m, tt.body)
		if got := show(m.Usage()); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		byByte := New(tt.api)
		for i := range tt.body {
			byByte.Write([]byte{tt.body[i]})
		}
		if diff := cmp.Diff(m.Usage(), byByte.Usage()); diff != "" {
			t.Errorf("%s, byte by byte (-want +got)\n%s", tt.name, diff)
		}
	}
}

// If a router reports the usage in the terms of two APIs, those of the requested API count.
func TestNamesOfTwoAPIs(t *testing.T) {
	for range 200 {
		for api, want := range map[API]int64{Chat: 2, Responses: 1} {
			m := New(api)
			fmt.Fprint(m, `{"usage":{"input_tokens":1,"prompt_tokens":2,"input_tokens_details":{"cached_tokens":1},"prompt_tokens_details":{"cached_tokens":2}}}`)
			if u := m.Usage(); u.Input == nil || *u.Input != want || u.Cached == nil || *u.Cached != want {
				t.Fatalf("%s: got %s, want %d", api, show(u), want)
			}
		}
	}
}

// Deeply nested parts of a response are not copied at every level.
func TestDeepDetails(t *testing.T) {
	const depth = 9900
	answer := `{"usage":` + strings.Repeat(`{"x_details":`, depth) + "{}" + strings.Repeat("}", depth) + "}"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := New(Chat)
	fmt.Fprint(m, answer)
	m.Usage()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("memory for %d bytes of response: got %d bytes, want at most %d", len(answer), used, 4<<20)
	}
}

func TestMeterStaysSmall(t *testing.T) {
	const usage = `,"usage":{"total_tokens":5}}` + "\n\n"
	for _, begin := range []string{`data: {"x":"`, `{"x":"`, `data: {"x":""}` + "\ndata: "} {
		m := New(Chat)
		fmt.Fprint(m, begin)
		for range longest >> 10 {
			fmt.Fprint(m, strings.Repeat("long ", 1<<10))
		}
		fmt.Fprint(m, `"`+usage)
		if held := cap(m.part) + cap(m.data); held > 4*longest {
			t.Errorf("memory after %s: got %d bytes, want at most %d", begin, held, 4*longest)
		}
		if got := m.Usage().Total; got != nil {
			t.Errorf("usage in a long event after %s: got %d, want none", begin, *got)
		}
		if m = New(Chat); strings.HasPrefix(begin, "data") {
			fmt.Fprint(m, begin+"long\"\n\ndata: {\"x\":1"+usage)
			if got := m.Usage().Total; got == nil || *got != 5 {
				t.Errorf("usage behind a long event after %s: got %s, want a total of 5", begin, show(m.Usage()))
			}
		}
	}
}

func TestTokens(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	tests := []struct {
		u     usage.Count
		want  int64
		known bool
	}{
		{usage.Count{}, 0, false},
		{usage.Count{Total: n(5), Input: n(1)}, 5, true},
		{usage.Count{Input: n(1), Candidates: n(2), Thoughts: n(3), Cached: n(9)}, 6, true},
		{usage.Count{Input: n(1)}, 1, false},
	}
	for _, tt := range tests {
		if got, known := tt.u.All(); got != tt.want || known != tt.known {
			t.Errorf("tokens of %s: got %d, known %t, want %d, known %t", show(tt.u), got, known, tt.want, tt.known)
		}
	}
	sum := usage.Count{Input: n(1), Total: n(1 << 62)}.Add(usage.Count{Total: n(1 << 62), Tool: n(0)})
	if got, want := show(sum), "input:1,cached:null,candidates:null,thoughts:null,tool:0,total:9223372036854775807"; got != want {
		t.Errorf("sum: got %s, want %s", got, want)
	}
}

// FuzzMeter cuts a response in two at every place, which must make no difference. A valid document of
// the Chat API must be read like a JSON decoder reads it.
func FuzzMeter(f *testing.F) {
	for _, a := range answers {
		f.Add(string(a.api), a.body)
	}
	f.Fuzz(func(t *testing.T, api, body string) {
		if len(body) > 600 {
			return
		}
		whole := New(API(api))
		fmt.Fprint(whole, body)
		want := whole.Usage()
		for cut := range len(body) {
			parts := New(API(api))
			fmt.Fprint(parts, body[:cut])
			fmt.Fprint(parts, body[cut:])
			if diff := cmp.Diff(want, parts.Usage()); diff != "" {
				t.Fatalf("cut at %d (-want +got)\n%s", cut, diff)
			}
		}
		var doc struct {
			Usage struct{ Total_tokens json.Number }
		}
		if body = strings.TrimSpace(body); !plain(body) || json.Unmarshal([]byte(body), &doc) != nil {
			return
		}
		if n, err := doc.Usage.Total_tokens.Int64(); err == nil && n >= 0 && n < 1e15 && API(api) == Chat {
			if want.Total == nil || *want.Total != n {
				t.Fatalf("usage: got %s, want a total of %d as a decoder reads it", show(want), n)
			}
		}
	})
}

// plain selects documents in which decoders agree which record counts.
func plain(body string) bool {
	return strings.HasPrefix(body, "{") && strings.Count(body, `"usage"`) == 1 && strings.Count(body, `"total_tokens"`) == 1 &&
		strings.Count(strings.ToLower(body), "usage") == 1 && strings.Count(strings.ToLower(body), "total_tokens") == 1 && !strings.Contains(body, `\`)
}

func BenchmarkMeter(b *testing.B) {
	event := []byte(`data: {"candidates":[{"content":{"parts":[{"text":"some words of an answer, about as long as they come"}],"role":"model"},"index":0}],"modelVersion":"m","usageMetadata":{"promptTokenCount":10}}` + "\r\n\r\n")
	m := New(Gemini)
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		m.Write(event)
	}
}

// A meter detects whether a response calls a tool of the client.
func TestCalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		api  API
		text string
		want bool
	}{
		{"gemini's call", Gemini, `{"candidates":[{"content":{"parts":[{"text":"x"},{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`, true},
		{"gemini's text", Gemini, `{"candidates":[{"content":{"parts":[{"text":"functionCall"}]},"finishReason":"STOP"}]}`, false},
		{"anthropic's call", Anthropic, `{"type":"message","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t"}],"stop_reason":"tool_use"}`, true},
		{"anthropic's call in a stream", Anthropic, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\"}}\n\n", true},
		{"anthropic's text", Anthropic, `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`, false},
		{"a call by responses", Responses, `{"status":"completed","output":[{"type":"message"},{"type":"function_call"}]}`, true},
		{"a call by responses in a stream", Responses, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"custom_tool_call\",\"status\":\"completed\"}}\n\n", true},
		{"text by responses", Responses, `{"status":"completed","output":[{"type":"reasoning"},{"type":"message"}]}`, false},
		{"a call by chat", Chat, `{"choices":[{"message":{"tool_calls":[{"id":"c"}]},"finish_reason":"stop"}]}`, true},
		{"a call by chat in a stream", Chat, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}\n\n", true},
		{"text by chat", Chat, `{"choices":[{"message":{"content":"x","tool_calls":[ ]},"finish_reason":"stop"}]}`, false},
		{"null by chat", Chat, `{"choices":[{"message":{"content":"x","tool_calls":null},"finish_reason":"stop"}]}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := New(tt.api)
			_, _ = m.Write([]byte(tt.text)) // it never fails
			m.Finish()
			if got := m.Calls(); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
