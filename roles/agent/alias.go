package agent

import "fmt"

// aliases are what the CLIs ask for by a short name: the gateway lets one model through,
// by its full name. "" is a choice that the CLI makes anew each time.
var aliases = map[string]map[string]string{
	"claude": {
		"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "best": "claude-opus-5-5", "haiku": "claude-haiku-5-5", "fable": "claude-fable-5-2",
		"opusplan": "claude-sonnet-5-5", "default": "", "inherit": "",
	},
	"gemini": {
		"pro": "gemini-3.1-pro-preview", "gemini-3-pro-preview": "gemini-3.1-pro-preview", "flash": "gemini-3.8-flash",
		"flash-lite": "gemini-3.5-flash-lite", "auto": "",
	},
	"copilot": {"auto": ""},
}

// FullName is the model that a CLI asks for by this name, which is mostly the same. One
// that only the CLI can resolve is an error.
func FullName(a Agent, model string) (string, error) {
	full, known := aliases[a.Name()][model]
	if !known {
		return model, nil
	}
	if full == "" {
		return "", fmt.Errorf("cannot use the model %q of %s: which model it stands for, only the CLI knows", model, a.Name())
	}
	return full, nil
}
