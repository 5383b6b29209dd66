package modelserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// refusal is an error response in the format of one API.
type refusal struct {
	status int
	body   map[string]any
}

// refusalOf returns the trouble in the format of the API at a path. If the API has no specific
// error for it, only the status tells them apart.
func refusalOf(path string, t Trouble) refusal {
	word, own := google, googles
	switch wireOf(path).(type) {
	case *messages:
		word, own = anthropic, anthropics
	case *responses, *chat:
		word, own = openai, openais
	}
	code, after, _ := strings.Cut(string(t), " ")
	if e, ok := own[Trouble(code)]; ok {
		if after != "" {
			e.detail = map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": after + "s"}
		}
		return refusal{e.status, word(e)}
	}
	status, err := strconv.Atoi(code)
	if err != nil {
		status = http.StatusInternalServerError
	}
	return refusal{status, word(wording{status: status, name: "played", says: fmt.Sprintf("played trouble %s", t)})}
}

// wording is what differs between the errors of an API: the status, the API's name for the error,
// and the message.
type wording struct {
	status     int
	name, says string
	detail     map[string]any // Google's
}

var googles = map[Trouble]wording{
	"401": {401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", nil},
	"403": {403, "PERMISSION_DENIED", "Your API key was reported as leaked. Please use another API key.", nil},
	"429": {429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", nil},
	"500": {500, "INTERNAL", "An internal error has occurred. Please retry.", nil},
	Daily: {http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "the day's quota is used up",
		map[string]any{"violations": []any{map[string]any{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}}}},
	Broke: {http.StatusForbidden, "PERMISSION_DENIED", "nobody has paid", map[string]any{"reason": "BILLING_DISABLED"}},
	Forged: {
		http.StatusBadRequest,
		"INVALID_ARGUMENT",
		"API key not valid. Please pass a valid API key.",
		map[string]any{"reason": "API_KEY_INVALID"},
	},
	TooLong: {
		http.StatusBadRequest,
		"INVALID_ARGUMENT",
		"The input token count (9000000) exceeds the maximum number of tokens allowed (1048576).",
		nil,
	},
	TooBig: {http.StatusBadRequest, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.", nil},
	NoModel: {
		http.StatusNotFound,
		"NOT_FOUND",
		"models/m is not found for API version v1beta, or is not supported for generateContent.",
		nil,
	},
	Loaded: {http.StatusServiceUnavailable, "UNAVAILABLE", "The model is overloaded. Please try again later.", nil},
}

func google(e wording) map[string]any {
	inner := map[string]any{"code": e.status, "message": e.says, "status": e.name}
	if e.detail != nil {
		inner["details"] = []any{e.detail}
	}
	return map[string]any{"error": inner}
}

var anthropics = map[Trouble]wording{
	"401": {401, "authentication_error", "invalid x-api-key", nil},
	"403": {403, "permission_error", "Your API key does not have permission to use the specified resource.", nil},
	"429": {429, "rate_limit_error", "This request would exceed your account's rate limit.", nil},
	"500": {500, "api_error", "Internal server error", nil},
	"529": {529, "overloaded_error", "Overloaded", nil},
	Daily: {400, "invalid_request_error", "You have reached your specified API usage limits. " +
		"You will regain access on 2099-01-01 at 00:00 UTC.", nil},
	Broke: {
		400,
		"invalid_request_error",
		"Your credit balance is too low to access the API. Please go to Plans & Billing.",
		nil,
	},
	Forged:  {401, "authentication_error", "invalid x-api-key", nil},
	TooLong: {400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", nil},
	TooBig:  {413, "request_too_large", "Request exceeds the maximum size", nil},
	NoModel: {404, "not_found_error", "model: m", nil},
	Loaded:  {529, "overloaded_error", "Overloaded", nil},
}

func anthropic(e wording) map[string]any {
	return map[string]any{
		"type":       "error",
		"error":      map[string]any{"type": e.name, "message": e.says},
		"request_id": "req_scripted",
	}
}

var openais = map[Trouble]wording{
	"401": {401, "invalid_api_key", "Incorrect API key provided.", nil},
	"403": {403, "unsupported_country_region_territory", "Country, region, or territory not supported", nil},
	"429": {429, "rate_limit_exceeded", "Rate limit reached on tokens per min (TPM).", nil},
	"500": {500, "server_error", "The server had an error while processing your request.", nil},
	Daily: {429, "rate_limit_exceeded", "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200, Requested 1. " +
		"Please try again in 7m12s.", nil},
	Broke: {
		429,
		"insufficient_quota",
		"You exceeded your current quota, please check your plan and billing details.",
		nil,
	},
	Forged: {401, "invalid_api_key", "Incorrect API key provided.", nil},
	TooLong: {
		400,
		"context_length_exceeded",
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		nil,
	},
	TooBig:  {413, "server_error", "Maximum content size limit (26214400) exceeded.", nil},
	NoModel: {404, "model_not_found", "The model `m` does not exist or you do not have access to it.", nil},
	Loaded:  {503, "server_is_overloaded", "Our servers are currently overloaded. Please try again later.", nil},
}

func openai(e wording) map[string]any {
	kind := e.name
	if e.status == http.StatusUnauthorized || e.status == http.StatusBadRequest {
		kind = "invalid_request_error"
	}
	return map[string]any{"error": map[string]any{"message": e.says, "type": kind, "param": nil, "code": e.name}}
}
