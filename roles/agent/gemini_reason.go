package agent

import (
	"fmt"
	"strings"

	"abl/internal/outcome"
)

// reason says why the call is not finished. The exit code alone proves nothing:
// the CLI also ends with 0 on a signal, on a blocked or empty answer, and when
// it stops a model that goes round in circles.
func (r *geminiReader) reason(exit int) string {
	switch {
	case r.result == nil && exit != 0:
		return "gemini ended without a result record: " + geminiExit(exit)
	case r.result == nil && r.cut:
		return "gemini ended without a result record that could be read: a line was too long"
	case r.result == nil:
		return "gemini ended without a result record, as it does when it is stopped"
	case r.result.Error != nil && r.result.Error.Message != "":
		return geminiSaid(exit, r.result.Error.Message)
	case r.failure != "":
		return geminiSaid(exit, r.failure)
	case exit != 0:
		return "gemini failed: " + geminiExit(exit)
	case r.result.Status != "success":
		return fmt.Sprintf("gemini reports the status %q", label(r.result.Status, maxName))
	}
	return unmoved(r.result.Stats.usage(), r.result.Stats.ToolCalls)
}

// unmoved says why a run that calls itself a success did nothing. That no tool was
// used is also the only trace of an answer that the token limit cut off at the
// first turn.
func unmoved(usage []Usage, tools count) string {
	return idle("gemini", usage, tools.n != nil && *tools.n == 0)
}

// geminiSaid joins the CLI's exit code and its own words.
func geminiSaid(exit int, words string) string {
	words = strings.TrimSuffix(label(words, maxReason), ".")
	if exit == 0 {
		return "gemini stopped: " + words
	}
	return fmt.Sprintf("gemini failed, %s: %s", geminiExit(exit), words)
}

// geminiExit explains an exit code. Those of refused requests are the HTTP
// status modulo 256.
func geminiExit(exit int) string {
	switch exit {
	case 41:
		return "exit code 41 (no usable login or key)"
	case 42:
		return "exit code 42 (no prompt reached it)"
	case 53:
		return "exit code 53 (too many turns)"
	case 55:
		return "exit code 55 (the folder is not trusted)"
	case 144, 145, 147, 148, 173:
		return fmt.Sprintf("exit code %d (HTTP status %d)", exit, exit+256)
	case 244, 246, 247, 248:
		return fmt.Sprintf("exit code %d (HTTP status %d)", exit, exit+256)
	}
	return fmt.Sprintf("exit code %d", exit)
}

// geminiTrouble tells a provider's trouble from the agent's. The CLI has tried
// again by itself, for minutes, before it gives one of the first up. A refused key
// and a prompt that is too long have the same status, and differ in their words.
func geminiTrouble(exit int, reason string) outcome.Outcome {
	text := strings.ToLower(reason)
	switch {
	case strings.Contains(text, "api key not valid"), strings.Contains(text, "api_key_invalid"):
		return outcome.Refused
	case strings.Contains(text, "maximum number of tokens"), strings.Contains(text, "input token count"):
		return outcome.TooLarge
	case exit == 173 && (strings.Contains(text, "perday") || strings.Contains(text, "daily")):
		return outcome.Quota
	}
	switch exit {
	case 173: // 429
		return outcome.RateLimited
	case 244, 246, 247, 248: // 500, 502, 503, 504
		return outcome.Unavailable
	case 41, 145, 147: // no key, 401, 403
		return outcome.Refused
	}
	if strings.Contains(text, "fetch failed") {
		return outcome.Network
	}
	return ""
}
