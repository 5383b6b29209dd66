package gateway

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gen = "/gemini/v1beta/models/m1:streamGenerateContent?alt=sse"

func TestProviders(t *testing.T) {
	tests := []struct {
		name, path, token    string // as the client sends them
		upstream, key, query string // as the provider sees them
		answer, usage, class string
	}{
		{"gemini", gen, "X-Goog-Api-Key: " + callTok, "/up/v1beta/models/m1:streamGenerateContent", "X-Goog-Api-Key: " + realKey, "alt=sse",
			"data: {\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2,\"thoughtsTokenCount\":3,\"totalTokenCount\":10}}\r\n\r\n",
			"input:5,cached:-,candidates:2,thoughts:3,tool:-,total:10", "stream"},
		{"gemini by query", "/gemini/v1beta/models/m1:generateContent?key=" + callTok, "", "/up/v1beta/models/m1:generateContent", "X-Goog-Api-Key: " + realKey, "",
			`{"usageMetadata":{"promptTokenCount":5}}`, "input:5,cached:-,candidates:-,thoughts:-,tool:-,total:-", "generate"},
		{"anthropic", "/anthropic/v1/messages?beta=true", "X-Api-Key: " + callTok, "/up/v1/messages", "X-Api-Key: " + realKey, "beta=true",
			"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":7,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n\n",
			"input:10,cached:7,candidates:20,thoughts:-,tool:-,total:30", "messages"},
		{"anthropic by bearer", "/anthropic/v1/messages/count_tokens", "Authorization: Bearer " + callTok, "/up/v1/messages/count_tokens", "X-Api-Key: " + realKey, "",
			`{"input_tokens":3}`, "input:-,cached:-,candidates:-,thoughts:-,tool:-,total:-", "count"},
		{"responses", "/openai-responses/v1/responses", "Authorization: Bearer " + callTok, "/up/responses", "Authorization: Bearer " + realKey, "",
			"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":50,\"output_tokens\":9,\"output_tokens_details\":{\"reasoning_tokens\":4},\"total_tokens\":59}}}\n\n",
			"input:50,cached:-,candidates:5,thoughts:4,tool:-,total:59", "responses"},
		{"chat", "/openai-chat/v1/chat/completions", "Authorization: Bearer " + callTok, "/up/chat/completions", "Authorization: Bearer " + realKey, "",
			"data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\ndata: [DONE]\n\n",
			"input:5,cached:-,candidates:2,thoughts:-,tool:-,total:7", "chat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := serve(t, say(http.StatusOK, "text/event-stream", tt.answer))
			r := start(t, setup(u.URL+"/up/"))
			body := modelled
			if strings.HasPrefix(tt.path, "/gemini") {
				body = shortBody
			}
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/"+callID+tt.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if name, value, ok := strings.Cut(tt.token, ": "); ok {
				q.Header.Set(name, value)
			}
			for _, name := range []string{"Cookie", "X-Http-Method-Override", "X-Forwarded-For", "Openai-Organization", "Proxy-Authorization", "Te"} {
				q.Header.Set(name, "x")
			}
			q.Header.Set("User-Agent", "cli/1")
			if got := r.do(q); got.status != http.StatusOK || got.body != tt.answer {
				t.Fatalf("response: got %+v, want 200 with %q", got, tt.answer)
			}
			e := r.next(Requested)
			if numbers(e) != tt.usage || e.Req.Class != tt.class || e.Req.Model != "m1" || e.Call != callID || e.Req.Out != int64(len(tt.answer)) || e.Req.In != int64(len(body)) {
				t.Errorf("log: got %+v, %+v, usage %s, want class %s, usage %s, %d bytes in and %d out",
					e, e.Req, numbers(e), tt.class, tt.usage, len(body), len(tt.answer))
			}
			name, value, _ := strings.Cut(tt.key, ": ")
			want := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"cli/1"}, "Content-Length": {fmt.Sprint(len(body))}, name: {value}}
			saw := u.requests()[0]
			if diff := cmp.Diff(want, saw.Header); diff != "" || saw.URL.Path != tt.upstream || saw.URL.RawQuery != tt.query || saw.Host != strings.TrimPrefix(u.URL, "http://") {
				t.Errorf("request to the provider: got %s?%s at %s, want %s?%s at %s (-want +got)\n%s",
					saw.URL.Path, saw.URL.RawQuery, saw.Host,
					tt.upstream, tt.query, strings.TrimPrefix(u.URL, "http://"), diff)
			}
			if log := r.log(); strings.Contains(log, realKey) || strings.Contains(log, callTok) {
				t.Errorf("log: got %s, want one without a secret", log)
			}
		})
	}
}

func TestModelsAreListedHere(t *testing.T) {
	r := start(t, setup("http://127.0.0.1:1"))
	for _, path := range []string{"/gemini/v1beta/models", "/anthropic/v1/models", "/openai-chat/v1/models"} {
		t.Run(path[1:], func(t *testing.T) {
			r.under(t)
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/"+callID+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer "+callTok)
			type model struct{ Name, ID string }
			var list struct{ Data, Models []model }
			want := []model{{"models/m1", "m1"}, {"models/m2", "m2"}}
			got := r.do(q)
			if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK || !slices.Equal(list.Data, want) || !slices.Equal(list.Models, want) {
				t.Errorf("got %+v, %v, want 200 and the models %+v", got, err, want)
			}
			if e := r.next(Requested); e.Req.Class != "models" || e.Usage != nil {
				t.Errorf("got class %q, usage %v, want models without usage", e.Req.Class, e.Usage)
			}
		})
	}
}

func TestRefusalsSpeakTheProvidersLanguage(t *testing.T) {
	r := start(t, setup("http://127.0.0.1:1"))
	for path, want := range map[string]string{
		"/gemini/v1beta/x":          `{"error":{"code":404,"message":"abl's gateway refuses this request: POST \"/v1beta/x\" is not allowed; this call may use POST /v1beta/models/{model}:streamGenerateContent, /v1beta/models/{model}:generateContent, /v1beta/models/{model}:countTokens of the API gemini","status":"NOT_FOUND"}}`,
		"/anthropic/v1/x":           `{"error":{"message":"abl's gateway refuses this request: POST \"/v1/x\" is not allowed; this call may use POST /v1/messages, /v1/messages/count_tokens of the API anthropic","type":"not_found_error"},"type":"error"}`,
		"/openai-chat/v1/responses": `{"error":{"code":null,"message":"abl's gateway refuses this request: POST \"/v1/responses\" is not allowed: it belongs to the API openai-responses; this call may use POST /v1/chat/completions of the API openai-chat","param":null,"type":"invalid_request_error"}}`,
	} {
		t.Run(path[1:], func(t *testing.T) {
			r.under(t)
			if got := r.post(path, "{}"); got.status != http.StatusNotFound || got.body != want {
				t.Errorf("got %+v, want 404 and %s", got, want)
			}
			if e := r.next(Requested); !e.Req.Refused || !strings.Contains(e.Reason, "is not allowed") || !strings.Contains(e.Reason, "; this call may use POST /v1") || e.Usage != nil {
				t.Errorf("got %+v, %+v, want a refusal with the reason that names the path", e, e.Req)
			}
		})
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	u := httptest.NewUnstartedServer(say(http.StatusOK, "application/json", "{}"))
	u.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the handshake that is to fail
	u.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	u.StartTLS()
	defer u.Close()
	strange := start(t, setup(u.URL))
	if got := strange.post(gen, "{}"); got.status != http.StatusBadGateway || strings.Contains(got.body, "127.0.0.1") {
		t.Errorf("server with an untrusted certificate: got %+v, want 502 without its address", got)
	}
	if e := strange.next(Requested); !strings.Contains(e.Reason, "certificate") || e.Req.Charged != 0 && e.Req.Refused {
		t.Errorf("got %+v, want a reason that names the certificate, and no charge", e)
	}
	s := setup(u.URL)
	s.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.Certificate().Raw}))
	if got := start(t, s).post(gen, "{}"); got.status != http.StatusOK {
		t.Errorf("server with the setup's authority: got %+v, want status 200", got)
	}
}
