package agent

// Keyed is an agent that needs a provider's key.
type Keyed interface {
	// KeyName is the environment variable that holds it.
	KeyName() string
}

// KeyName is the variable that holds an agent's key, "" when it needs none.
func KeyName(a Agent) string {
	if k, ok := a.(Keyed); ok {
		return k.KeyName()
	}
	return ""
}

// KeyName is the variable of a Gemini API key.
func (Gemini) KeyName() string { return "GEMINI_API_KEY" }
