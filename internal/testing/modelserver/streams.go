package modelserver

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
)

// Troubles in the middle of a stream: the response starts with some text of the model, then this
// happens. A client may take the text for the whole response.
const (
	Unended Trouble = "unended" // the stream stops without the end that the API requires
	Erring  Trouble = "erring"  // an error of the provider
	Jumbled Trouble = "jumbled" // an event that is not JSON
	Limited Trouble = "limited" // the end at a token limit

	Declined Trouble = "declined" // the end by a filter, or by the model itself

	// Blank is a complete response without text or tool use.
	Blank Trouble = "blank"
)

// samples holds the events of an API: text of the model, an error, the end at a token limit, the
// end of a declined response, and a complete response without text.
type samples struct{ begin, erring, limited, declined, blank []string }

var googleSamples = samples{
	begin:  []string{`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"All is done."}]}}],"usageMetadata":{"promptTokenCount":70,"totalTokenCount":70}}`},
	erring: []string{`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`},
	limited: []string{`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":" And"}]},"finishReason":"MAX_TOKENS"}],` +
		`"usageMetadata":{"promptTokenCount":70,"candidatesTokenCount":9,"totalTokenCount":79}}`},
	declined: []string{`{"candidates":[{"index":0,"finishReason":"SAFETY"}],"usageMetadata":{"promptTokenCount":70,"candidatesTokenCount":9,"totalTokenCount":79}}`},
	blank: []string{`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":70,"candidatesTokenCount":9,"totalTokenCount":79}}`},
}

const anthropicStart = `{"type":"message_start","message":{"id":"msg_cut","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,` +
	`"usage":{"input_tokens":70,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":1}}}`

var anthropicSamples = samples{
	begin: []string{
		anthropicStart,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"All is done."}}`,
	},
	erring: []string{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
	limited: []string{
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	},
	declined: []string{
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	},
	blank: []string{
		anthropicStart,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	},
}

const responsesStart = `{"type":"response.created","response":{"id":"resp_cut","object":"response","created_at":0,"model":"m","status":"in_progress","output":[]}}`

var responsesSamples = samples{
	begin: []string{
		responsesStart,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_cut","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"msg_cut","delta":"All is done."}`,
	},
	erring: []string{`{"type":"response.failed","response":{"id":"resp_cut","object":"response","created_at":0,"model":"m","status":"failed","output":[],` +
		`"error":{"code":"server_error","message":"The model is overloaded."}}}`},
	limited: []string{`{"type":"response.incomplete","response":{"id":"resp_cut","object":"response","created_at":0,"model":"m","status":"incomplete","output":[],` +
		`"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":70,"output_tokens":9,"total_tokens":79}}}`},
	declined: []string{`{"type":"response.incomplete","response":{"id":"resp_cut","object":"response","created_at":0,"model":"m","status":"incomplete","output":[],` +
		`"incomplete_details":{"reason":"content_filter"},"usage":{"input_tokens":70,"output_tokens":9,"total_tokens":79}}}`},
	blank: []string{responsesStart, `{"type":"response.completed","response":{"id":"resp_cut","object":"response","created_at":0,"model":"m","status":"completed","output":[],` +
		`"usage":{"input_tokens":70,"output_tokens":9,"total_tokens":79}}}`},
}

var chatSamples = samples{
	begin:  []string{`{"id":"chatcmpl-cut","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"All is done."},"finish_reason":null}]}`},
	erring: []string{`{"error":{"message":"The model is overloaded.","type":"server_error","param":null,"code":null}}`},
	limited: []string{
		`{"id":"chatcmpl-cut","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`,
		`{"id":"chatcmpl-cut","object":"chat.completion.chunk","created":0,"model":"m","choices":[],"usage":{"prompt_tokens":70,"completion_tokens":9,"total_tokens":79}}`,
		`[DONE]`,
	},
	declined: []string{
		`{"id":"chatcmpl-cut","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`,
		`[DONE]`,
	},
	blank: []string{
		`{"id":"chatcmpl-cut","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`,
		`{"id":"chatcmpl-cut","object":"chat.completion.chunk","created":0,"model":"m","choices":[],"usage":{"prompt_tokens":70,"completion_tokens":9,"total_tokens":79}}`,
		`[DONE]`,
	},
}

// eventName matches the type that names an event, in the APIs that name events.
var eventName = regexp.MustCompile(`^{"type":"([a-z._]+)"`)

// play sends a stream with the trouble in the format of the API at the path.
func (t Trouble) play(w http.ResponseWriter, path string) {
	say := googleSamples
	switch wireOf(path).(type) {
	case *messages:
		say = anthropicSamples
	case *responses:
		say = responsesSamples
	case *chat:
		say = chatSamples
	}
	ends := map[Trouble][]string{
		Erring:   say.erring,
		Limited:  say.limited,
		Declined: say.declined,
		Jumbled:  {`{"candidates": [ this is no JSON`},
	}
	events := slices.Concat(say.begin, ends[t])
	if t == Blank {
		events = say.blank
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if name := eventName.FindStringSubmatch(e); name != nil {
			fmt.Fprintf(w, "event: %s\n", name[1])
		}
		_, _ = io.WriteString(w, "data: "+e+"\n\n") // the client may have disconnected
		_ = http.NewResponseController(w).Flush()
	}
}
