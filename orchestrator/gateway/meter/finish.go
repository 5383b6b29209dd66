package meter

// finishes says under which path each API tells how an answer ended. What comes later
// counts, except that nothing takes back a "!": a status stands beside its reason, in
// either order, and a refusal inside an answer that is complete.
var finishes = map[API]map[string]string{
	Gemini: {
		"/candidates/*/finishReason": "", "/promptFeedback/blockReason": "!",
		"/*/candidates/*/finishReason": "", "/*/promptFeedback/blockReason": "!",
	},
	Anthropic: {"/delta/stop_reason": "", "/stop_reason": ""},
	Responses: {
		"/response/status": "", "/response/incomplete_details/reason": "!", "/response/output/*/content/*/refusal": "!refusal",
		"/status": "", "/incomplete_details/reason": "!", "/output/*/content/*/refusal": "!refusal",
	},
	Chat: {"/choices/*/finish_reason": "", "/choices/*/message/refusal": "!refusal", "/choices/*/delta/refusal": "!refusal"},
}

// telling are words of which an event has one that says anything of usage or of the end.
var telling = map[API][]string{
	Gemini: {"usage", "finishReason", "blockReason"}, Anthropic: {"usage", "stop_reason"},
	Responses: {"usage", "status", "refusal"}, Chat: {"usage", "finish_reason", "refusal"},
}

// Finish is how the answer ended, in the API's own word; "" while it has not said.
func (m *Meter) Finish() string { return m.finish }

// wanted says that a text tells how the answer ended.
func (m *Meter) wanted(path []byte) bool {
	_, ok := finishes[m.api][string(path)]
	return ok
}

// tell notes such a text.
func (m *Meter) tell(path, text []byte) {
	how := finishes[m.api][string(path)]
	switch word := string(text); {
	case word == "" || m.firm || word == "in_progress" || word == "queued": // it goes on
	case how == "!refusal":
		m.finish, m.firm = "refusal", true
	default:
		m.finish, m.firm = word, how == "!"
	}
}
