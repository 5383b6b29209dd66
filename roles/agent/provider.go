package agent

// Provider is the model service that an agent's CLI talks to, and how the CLI is
// told where it is and what the key is.
type Provider struct {
	API     string // as the gateway knows it: gemini, anthropic, openai-responses, openai-chat
	KeyVar  string // environment variable of the key; in a box it holds the call's token
	BaseVar string // environment variable of the address
}

// Served is an agent that needs a provider.
type Served interface{ Provider() Provider }

// ProviderOf is the provider that an agent needs; ok is false when it needs none.
func ProviderOf(a Agent) (p Provider, ok bool) {
	if s, is := a.(Served); is {
		p = s.Provider()
		return p, p.API != ""
	}
	return Provider{}, false
}

// KeyVars are the variables of every provider's key.
func KeyVars() (all []string) {
	for _, a := range clis() {
		if p, served := ProviderOf(a); served {
			all = append(all, p.KeyVar)
		}
	}
	return all
}

// Provider is Google's Gemini API.
func (Gemini) Provider() Provider {
	return Provider{API: "gemini", KeyVar: "GEMINI_API_KEY", BaseVar: "GOOGLE_GEMINI_BASE_URL"}
}
