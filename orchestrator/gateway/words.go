package gateway

import (
	"encoding/json"
	"net/http"

	"abl/orchestrator/gateway/meter"
)

type object map[string]any

// errorWords is the body of an error answer as the provider itself would word it, so
// that its client shows the message instead of choking on it. Clients of an
// unknown API get OpenAI's form, the most copied one.
func errorWords(kind meter.API, status int, message string) []byte {
	switch kind {
	case meter.Gemini:
		return encodeJSON(object{"error": object{"code": status, "message": message, "status": googleStatus(status)}})
	case meter.Anthropic:
		return encodeJSON(object{"type": "error", "error": object{"type": anthropicType(status), "message": message}})
	}
	return encodeJSON(object{"error": object{"message": message, "type": openAIType(status), "param": nil, "code": nil}})
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

func googleStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	return "INVALID_ARGUMENT"
}

func anthropicType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case status >= http.StatusInternalServerError:
		return "api_error"
	}
	return "invalid_request_error"
}

func openAIType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}
