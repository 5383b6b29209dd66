package gateway

import (
	"cmp"
	"encoding/json"

	"abl/internal/gateway/meter"
)

type object map[string]any

// statusWords are the APIs' names of the statuses with which the gateway itself answers;
// 4 and 5 stand for all others that begin so.
var statusWords = map[meter.API]map[int]string{
	meter.Gemini: {
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
		4: "INVALID_ARGUMENT", 5: "INVALID_ARGUMENT",
	},
	meter.Anthropic: {
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large", 503: "overloaded_error",
		4: "invalid_request_error", 5: "api_error",
	},
	meter.Chat: {401: "authentication_error", 403: "permission_error", 4: "invalid_request_error", 5: "server_error"},
}

// errorWords is the body of an error answer as the provider itself would word it, so
// that its client shows the message instead of choking on it. Clients of an
// unknown API get OpenAI's form, the most copied one.
func errorWords(kind meter.API, status int, message string) []byte {
	if statusWords[kind] == nil {
		kind = meter.Chat
	}
	word := cmp.Or(statusWords[kind][status], statusWords[kind][status/100])
	switch kind {
	case meter.Gemini:
		return encodeJSON(object{"error": object{"code": status, "message": message, "status": word}})
	case meter.Anthropic:
		return encodeJSON(object{"type": "error", "error": object{"type": word, "message": message}})
	}
	return encodeJSON(object{"error": object{"message": message, "type": word, "param": nil, "code": nil}})
}

// modelList is the answer to the question which models there are.
func modelList(kind meter.API, models []string) []byte {
	all := make([]object, len(models))
	for i, m := range models {
		switch kind {
		case meter.Gemini:
			all[i] = object{"name": "models/" + m, "displayName": m, "supportedGenerationMethods": []string{"generateContent", "countTokens"}}
		case meter.Anthropic:
			all[i] = object{"type": "model", "id": m, "display_name": m}
		default:
			all[i] = object{"object": "model", "id": m, "owned_by": "abl"}
		}
	}
	switch kind {
	case meter.Gemini:
		return encodeJSON(object{"models": all})
	case meter.Anthropic:
		return encodeJSON(object{"data": all, "has_more": false})
	}
	return encodeJSON(object{"object": "list", "data": all})
}

func encodeJSON(v object) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("{}") // strings and numbers always encode
	}
	return data
}
