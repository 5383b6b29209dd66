package images

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The newest version of an agent's program is what the npm registry calls the latest one.
func TestNewest(t *testing.T) {
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := map[string]string{
			"/@openai%2Fcodex/latest":                       `{"version": "0.180.0"}`,
			"/@anthropic-ai%2Fclaude-code-linux-x64/latest": `{"version": "2.2.0"}`,
			"/@google%2Fgemini-cli/latest":                  `{"version": "latest; rm -rf /"}`,
		}[r.URL.EscapedPath()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(body)) // a client that left is not tested
	}))
	defer registry.Close()
	m := Maker{Env: func(name string) string { return map[string]string{"npm_config_registry": registry.URL}[name] }}
	for _, tt := range []struct{ agent, want, err string }{
		{"codex", "0.180.0", ""},
		{"claude", "2.2.0", ""},
		{"gemini", "", "is not a version"},
		{"copilot", "", "cannot find the newest version of @github/copilot-linux-x64: the npm registry responds with 404"},
	} {
		t.Run(tt.agent, func(t *testing.T) {
			got, err := m.Newest(t.Context(), tt.agent)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q and %v, want %q and %q", got, err, tt.want, tt.err)
			}
		})
	}
}
