package meter

// field is one number that providers tell.
type field int

const (
	input field = iota
	cacheRead
	cacheWrite
	output
	thoughts
	tool
	total
	fields // how many there are
)

// places says under which path each API tells what. "*" is an array's element:
// Gemini streams an array where no alt=sse is asked for.
var places = map[API]map[string]field{
	Gemini: {
		"/usageMetadata/promptTokenCount":          input,
		"/usageMetadata/cachedContentTokenCount":   cacheRead,
		"/usageMetadata/candidatesTokenCount":      output,
		"/usageMetadata/thoughtsTokenCount":        thoughts,
		"/usageMetadata/toolUsePromptTokenCount":   tool,
		"/usageMetadata/totalTokenCount":           total,
		"/*/usageMetadata/promptTokenCount":        input,
		"/*/usageMetadata/cachedContentTokenCount": cacheRead,
		"/*/usageMetadata/candidatesTokenCount":    output,
		"/*/usageMetadata/thoughtsTokenCount":      thoughts,
		"/*/usageMetadata/toolUsePromptTokenCount": tool,
		"/*/usageMetadata/totalTokenCount":         total,
	},
	// The output count of message_start is of its first tokens only, so an answer
	// that was cut before message_delta has none.
	Anthropic: {
		"/message/usage/input_tokens":                input,
		"/message/usage/cache_read_input_tokens":     cacheRead,
		"/message/usage/cache_creation_input_tokens": cacheWrite,
		"/usage/input_tokens":                        input,
		"/usage/cache_read_input_tokens":             cacheRead,
		"/usage/cache_creation_input_tokens":         cacheWrite,
		"/usage/output_tokens":                       output,
	},
	Responses: {
		"/response/usage/input_tokens":                           input,
		"/response/usage/input_tokens_details/cached_tokens":     cacheRead,
		"/response/usage/output_tokens":                          output,
		"/response/usage/output_tokens_details/reasoning_tokens": thoughts,
		"/response/usage/total_tokens":                           total,
		"/usage/input_tokens":                                    input,
		"/usage/input_tokens_details/cached_tokens":              cacheRead,
		"/usage/output_tokens":                                   output,
		"/usage/output_tokens_details/reasoning_tokens":          thoughts,
		"/usage/total_tokens":                                    total,
	},
	Chat: {
		"/usage/prompt_tokens":                              input,
		"/usage/prompt_tokens_details/cached_tokens":        cacheRead,
		"/usage/completion_tokens":                          output,
		"/usage/completion_tokens_details/reasoning_tokens": thoughts,
		"/usage/total_tokens":                               total,
	},
}

// whole names the records of which the last one counts and replaces those
// before. Anthropic's two complete each other.
var whole = map[API]map[string]bool{
	Gemini:    {"/usageMetadata": true, "/*/usageMetadata": true},
	Responses: {"/response/usage": true, "/usage": true},
	Chat:      {"/usage": true},
}
