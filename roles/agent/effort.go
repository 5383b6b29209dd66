package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// effort is the setting of a CLI for how long a model may think. It takes abl's word (low, medium,
// high or max) and returns the CLI's value for a model, "" if abl has none for that model. sure is
// set if the model is known to take the value.
type effort func(model, word string) (value string, sure bool)

// EffortOf returns the effort for calls of a model, "" for the CLI's default. If the user did not
// choose word and the model may refuse it, EffortOf returns "". It fails if abl cannot pass on a
// chosen word.
func (a Agent) EffortOf(model, word string, chosen bool) (string, error) {
	if a.Effort == nil || word == "" {
		return "", nil
	}
	value, sure := a.Effort(model, word)
	switch {
	case value == "" && chosen:
		return "", fmt.Errorf("cannot use the effort %q with the model %q of %s: abl has no value for it", word, model,
			a.Name)
	case value == "" || !sure && !chosen:
		return "", nil
	}
	return word, nil
}

// plainEffort passes the word on unchanged.
func plainEffort(_, word string) (string, bool) { return word, true }

var (
	budgetClaude = regexp.MustCompile(`claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-[0-9]{8})?$)`) // 4.5 and older
	openAIThinks = regexp.MustCompile(`^(o[1-9]|gpt-[5-9])`)
	openAITop    = regexp.MustCompile(`^gpt-(5\.[6-9]|[6-9])`) // take the effort max
	openAIHigh   = regexp.MustCompile(`^gpt-5\.[2-5]`)         // take xhigh
	geminiBudget = regexp.MustCompile(`^gemini-2\.5-(pro|flash)`)
	geminiLevel  = regexp.MustCompile(`^gemini-([3-9]|[1-9][0-9])`)
)

// claudeBudgets are budgets of thinking tokens for older models. The largest is below the 32,000
// tokens of a response.
var claudeBudgets = map[string]string{"low": "4096", "medium": "16384", "high": "31999", "max": "31999"}

// claudeEffort returns the flag --effort, which Claude Code ignores for older models, or the
// variable of a budget.
func claudeEffort(c Call) (args []string, env map[string]string) {
	switch {
	case c.Effort == "":
	case budgetClaude.MatchString(c.Model):
		env = map[string]string{"MAX_THINKING_TOKENS": claudeBudgets[c.Effort]}
	default:
		args = []string{"--effort", c.Effort}
	}
	return args, env
}

// openAIEffort returns the value for OpenAI's APIs. The highest value depends on the model. Models
// of other vendors support only low, medium and high.
func openAIEffort(model, word string) (value string, sure bool) {
	sure = openAIThinks.MatchString(model)
	switch {
	case word != "max" || openAITop.MatchString(model):
		return word, sure
	case openAIHigh.MatchString(model):
		return "xhigh", sure
	}
	return "high", sure
}

// geminiBudgets are budgets of thinking tokens for Gemini 2.5.
var geminiBudgets = map[string]int{"low": 2048, "medium": 8192, "high": 16_384, "max": 32_768}

// flashBudget is the largest budget of Gemini 2.5 Flash, in tokens.
const flashBudget = 24_576

// geminiThinking returns the thinkingConfig of the Gemini API, nil for a model that abl does not
// know.
func geminiThinking(model, word string) map[string]any {
	if geminiLevel.MatchString(model) {
		level := map[string]string{"low": "LOW", "medium": "MEDIUM", "high": "HIGH", "max": "HIGH"}
		return map[string]any{"thinkingLevel": level[word]}
	}
	kind := geminiBudget.FindStringSubmatch(model)
	if kind == nil {
		return nil
	}
	budget := geminiBudgets[word]
	if kind[1] == "flash" {
		budget = min(budget, flashBudget)
	}
	return map[string]any{"thinkingBudget": budget}
}

func geminiEffort(model, word string) (string, bool) {
	if geminiThinking(model, word) == nil {
		return "", false
	}
	return word, true
}

// geminiDefaults is the content of a settings file with the effort. Gemini CLI has neither a flag
// nor a variable for it.
func geminiDefaults(c Call) []byte {
	type object = map[string]any
	override := object{
		"match":       object{"model": c.Model},
		"modelConfig": object{"generateContentConfig": object{"thinkingConfig": geminiThinking(c.Model, c.Effort)}},
	}
	// strings and numbers always encode
	data, _ := json.Marshal(object{"modelConfigs": object{"customOverrides": []object{override}}})
	return data
}
