package gateway

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"abl/internal/gateway/meter"
)

// rules allow all four APIs with the models m1 and m2.
func rules(t testing.TB) *server {
	t.Helper()
	order := Setup{Call: Call{ID: "p1.1", Token: callTok}, Connect: []string{"registry.example:443"}, Limits: defaults}
	order.Limits.Body = 1000
	for kind := range apis {
		order.Providers = append(order.Providers, Provider{Name: string(kind), Upstream: "https://up.example", Key: "the-real-key", Models: []string{"m1", "m2"}})
	}
	s, err := Process{Out: io.Discard}.begin(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parse reads a request as the server does.
func parse(t testing.TB, raw string) *http.Request {
	t.Helper()
	q, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return q
}

// show prints a verdict in a line.
func show(v *verdict) string {
	switch {
	case v.Refused:
		return fmt.Sprintf("%d %s", v.Status, v.reason)
	case v.Host != "":
		return "connect " + v.Host
	case v.local:
		return "list of " + v.Provider
	}
	return fmt.Sprintf("%s %s %s?%s model=%s", v.Provider, v.Class, v.path, v.query, v.Model)
}

const (
	goog   = "X-Goog-Api-Key: " + callTok + "\r\n"
	byAuth = "Authorization: Bearer " + callTok + "\r\n"
	xapi   = "X-Api-Key: " + callTok + "\r\n"
	target = "/p1.1/gemini/v1beta/models/m1:streamGenerateContent"
)

func TestDecide(t *testing.T) {
	proxy := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("p1.1:"+callTok)) + "\r\n"
	const (
		noToken  = "401 the token does not belong to this call"
		noPath   = `404 POST "/`
		noCall   = "404 the path does not begin with this call and one of its providers"
		noModel  = "403 the model"
		notPlain = "400 only plain HTTP/1.1 without an encoded body is allowed"
	)
	tests := []struct{ line, headers, want string }{
		{"POST " + target + "?alt=sse", goog, "gemini stream /v1beta/models/m1:streamGenerateContent?alt=sse model=m1"},
		{"POST " + target + "?key=" + callTok + "&alt=sse", "", "gemini stream /v1beta/models/m1:streamGenerateContent?alt=sse model=m1"},
		{"POST /p1.1/gemini/v1beta/models/m2:generateContent", byAuth, "gemini generate /v1beta/models/m2:generateContent? model=m2"},
		{"POST /p1.1/gemini/v1beta/models/m2:countTokens", goog, "gemini count /v1beta/models/m2:countTokens? model=m2"},
		{"GET /p1.1/gemini/v1beta/models", goog, "list of gemini"},
		{"POST /p1.1/anthropic/v1/messages?beta=true", xapi, "anthropic messages /v1/messages?beta=true model="},
		{"POST /p1.1/anthropic/v1/messages/count_tokens", byAuth, "anthropic count /v1/messages/count_tokens? model="},
		{"POST /p1.1/openai-responses/v1/responses", byAuth, "openai-responses responses /responses? model="},
		{"POST /p1.1/openai-chat/v1/chat/completions", "authorization: bEARER " + callTok + "\r\n", "openai-chat chat /chat/completions? model="},
		{"GET /p1.1/openai-chat/v1/models", byAuth, "list of openai-chat"},

		{"POST " + target, "", noToken},
		{"POST " + target, "X-Goog-Api-Key: " + callTok + "x\r\n", noToken},
		{"POST " + target, "X-Goog-Api-Key: \r\n", noToken},
		{"POST " + target, "Authorization: Basic " + callTok + "\r\n", noToken},
		{"POST " + target + "?key=other", goog, noToken},
		{"POST " + target, goog + "X-Api-Key: other\r\n", noToken},
		{"POST " + target, "Cookie: key=" + callTok + "\r\n", noToken},

		{"POST /p1.2/gemini/v1beta/models/m1:generateContent", goog, noCall},
		{"POST /p1.1/other/v1beta/models/m1:generateContent", goog, noCall},
		{"POST /v1beta/models/m1:generateContent", goog, noCall},
		{"POST /", goog, noCall},
		{"GET " + target, goog, `404 GET "/v1beta/models/m1:streamGenerateContent" is not allowed; this call may use POST /v1beta/models/{model}:streamGenerateContent, /v1beta/models/{model}:generateContent, /v1beta/models/{model}:countTokens of the API gemini`},
		{"DELETE /p1.1/anthropic/v1/messages", xapi, `404 DELETE "/v1/messages" is not allowed; this call may use POST /v1/messages, /v1/messages/count_tokens of the API anthropic`},
		{"POST /p1.1/gemini/v1beta/models", goog, noPath},
		{"POST /p1.1/gemini/v1beta/models/m1:batchEmbedContents", goog, noPath},
		{"POST /p1.1/gemini/v1beta/files", goog, noPath},
		{"POST /p1.1/gemini/v1beta/models/m1:generateContent/x", goog, noPath},
		{"POST /p1.1/gemini/v1beta/models/:generateContent", goog, noPath},
		{"POST /p1.1/gemini/v1beta/models/a/m1:generateContent", goog, noPath},
		{"POST /p1.1/gemini/v1beta/models/m1:x:generateContent", goog, noPath},
		{"POST /p1.1/gemini/v1beta/models/m3:generateContent", goog, noModel + " "},
		{"POST /p1.1/gemini/v1beta/models/M1:generateContent", goog, noModel + " "},
		{"POST /p1.1/anthropic/v1/messages/", xapi, noPath},
		{"POST /p1.1/anthropic/v1/messages/batches", xapi, noPath},
		{"POST " + target + "?alt=sse&fields=x", goog, `400 the parameter "fields" is not allowed (docs/gateway.md)`},
		{"POST /p1.1/openai-chat/v1/chat/completions?alt=sse", byAuth, `400 the parameter "alt" is not allowed (docs/gateway.md)`},

		{"POST /p1.1/gemini/v1beta/models/%6d1:generateContent", goog, noModel + " "},
		{"POST /p1.1/anthropic/v1/%2e%2e/v1/messages", xapi, noPath},
		{"POST /p1.1/anthropic/x/../v1/messages", xapi, noPath},
		{"POST /p1.1/anthropic/./v1/messages", xapi, noPath},
		{"POST /p1.1/anthropic//v1/messages", xapi, noPath},
		{"POST //evil.example/p1.1/anthropic/v1/messages", xapi, noCall},
		{"POST /p1.1/anthropic/v1/messages;x=1", xapi, noPath},
		{"POST /p1.1/anthropic/v1\\messages", xapi, noPath},
		{"POST /p1.1/anthropic/v1/messages#x", xapi, noPath},
		{"POST /p1.1/anthropic/v1/messag\u00e9s", xapi, noPath},
		{"POST /p1.1/anthropic/v1/messages?beta=%74rue", xapi, `400 the parameter "beta" is not allowed (docs/gateway.md)`},
		{"POST /p1.1/anthropic/v1/messages?", xapi, "anthropic messages /v1/messages? model="},
		{"POST http://evil.example/p1.1/anthropic/v1/messages", xapi, noCall},
		{"GET http://Registry.example/x?y", proxy, "403 plain http; only https is allowed"},
		{"GET http://registry.example/x", "", "401 the token does not belong to this call"},
		{"OPTIONS *", xapi, noCall},
		{"POST /" + strings.Repeat("a", 2000), xapi, noCall},

		{"POST " + target, goog + "Content-Length: 1001\r\n", "413 its body has 1001 bytes, and the gateway allows at most 1000, whatever the model allows"},
		{"POST " + target, goog + "Transfer-Encoding: chunked\r\n", "411 the body is chunked and has no length"},
		{"POST " + target, goog + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "411 the body is chunked and has no length"},
		{"POST " + target, goog + "Content-Encoding: gzip\r\n", notPlain},
		{"POST " + target, goog + "Upgrade: websocket\r\nConnection: upgrade\r\n", notPlain},

		{"CONNECT registry.example:443", proxy, "connect registry.example:443"},
		{"CONNECT REGISTRY.example:443", proxy, "connect registry.example:443"},
		{"CONNECT registry.example:443", "Proxy-Authorization: Bearer " + callTok + "\r\n", "connect registry.example:443"},
		{"CONNECT registry.example:443", "", "407 the token does not belong to this call"},
		{"CONNECT registry.example:443", byAuth, "407 the token does not belong to this call"},
		{"CONNECT registry.example:80", proxy, "403 registry.example:80 is not in network.allow"},
		{"CONNECT x.registry.example:443", proxy, "403 x.registry.example:443 is not in network.allow"},
		{"CONNECT registry.example.:443", proxy, "403 registry.example.:443 is not in network.allow"},
		{"CONNECT 127.0.0.1:80", proxy, "403 127.0.0.1:80 is not in network.allow"},
		{"CONNECT registry.example", proxy, "400 the target is not a host and a port"},
	}
	for _, tt := range tests {
		headers := tt.headers
		if !strings.HasPrefix(tt.line, "CONNECT") {
			headers += "Host: gateway\r\n"
		}
		got := show(rules(t).decide(parse(t, tt.line+" HTTP/1.1\r\n"+headers+"\r\n")))
		if got != tt.want && !((tt.want == noPath || strings.HasSuffix(tt.want, " ")) && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s [%q]:\n got %s\nwant %s", tt.line, tt.headers, got, tt.want)
		}
	}
}

// The log names the host of a plain http request, so that the user learns the target.
func TestProxied(t *testing.T) {
	known := http.Header{"Proxy-Authorization": {"Bearer " + callTok}}
	for target, want := range map[string]string{
		"http://Registry.example/x?y": "registry.example:80", "HTTP://a.example:8080": "a.example:8080", "http://a.example?x": "a.example:80",
		"http://a;b/": "", "http://" + strings.Repeat("a", 2000): "",
	} {
		got := rules(t).decide(&http.Request{Method: http.MethodGet, RequestURI: target, Header: known})
		if !got.Refused || got.Class != "http" || got.Host != want {
			t.Errorf("%q: got %+v, want %q", target, got, want)
		}
	}
	for _, target := range []string{"/http://x", "https://x/", "*", ""} {
		if got := rules(t).decide(&http.Request{Method: http.MethodGet, RequestURI: target, Header: known}); got.Class == "http" || !got.Refused {
			t.Errorf("request for %q: got %+v, want a refusal of another class than http", target, got)
		}
	}
}

func TestDecideOldHTTP(t *testing.T) {
	got := show(rules(t).decide(parse(t, "POST "+target+" HTTP/1.0\r\n"+goog+"\r\n")))
	if got != "400 only plain HTTP/1.1 without an encoded body is allowed" {
		t.Errorf("request with HTTP/1.0: got %q, want 400 that allows only plain HTTP/1.1", got)
	}
}

func TestBody(t *testing.T) {
	const (
		ok      = "passes with model m1"
		noModel = "403 the model "
		noJSON  = "400 the body is not a JSON object"
		twice   = `400 the body has the field "model" twice`
		field   = "403 the field "
		tool    = "403 the tool "
	)
	tests := []struct {
		api  meter.API
		body string
		want string
	}{
		{meter.Anthropic, `{"model":"m1","max_tokens":1}`, ok},
		{meter.Anthropic, " {\"system\" : [1, {\"model\":\"m9\"}, \"}\\\"\" ] , \"model\"\t:\"m1\"\n} ", ok},
		{meter.Anthropic, `{"m\u006fdel":"m1"}`, ok},
		{meter.Anthropic, `{"model":["m1"]}`, noModel + `""`},
		{meter.Anthropic, `{"system":{"model":"m1"}}`, noModel + `""`},
		{meter.Anthropic, `{}`, noModel + `""`},
		{meter.Chat, `{"model":"m1","mod\u0065l":"m9"}`, twice},
		{meter.Chat, `{"Model":"m1"}`, noModel + `""`},
		{meter.Chat, `{"model":"m1"}{"model":"m9"}`, noJSON},
		{meter.Chat, `{"model":"m1",}`, noJSON},
		{meter.Chat, `{"model":"m1"`, noJSON},
		{meter.Chat, `{"model":}`, noJSON},
		{meter.Chat, `{"model" "m1"}`, noJSON},
		{meter.Chat, `{1:"m1"}`, noJSON},
		{meter.Chat, `[{"model":"m1"}]`, noJSON},
		{meter.Chat, `"model"`, noJSON},
		{meter.Chat, ``, noJSON},
		{meter.Chat, "{\"model\":\"m1\"}\x00", noJSON},
		{meter.Chat, `{"model":"m1","user":"the-real-key"}`, "403 the body contains the provider's key"},
		{meter.Chat, `{"model":"m1","metadata":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, noJSON},

		{meter.Gemini, `{"tools":[{"functionDeclarations":[]},{"function_declarations":[]}]}`, ok},
		{meter.Gemini, `{"tools":{"google_search":{}}}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","tools":[{"name":"Bash"},{"type":"custom"},{"type":"bash_20250124"}]}`, ok},
		{meter.Anthropic, `{"model":"m1","tools":[{"type":"web_search_1","type":"custom"}]}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","tools":[{"type":null}]}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","tools":[{"type":"Custom"}]}`, tool + `"Custom"`},
		{meter.Anthropic, `{"model":"m1","messages":[{"content":"x"},{"content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"x"}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"x"}}}]}]}`, ok},
		{meter.Anthropic, `{"model":"m1","messages":[{"content":[{"tool":{"type":"web_search_1"}}]}]}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","messages":[{"content":[],"content":[{"tool":{}}]}]}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","messages":[{"content":[{"tool":{"definition":{"type":"web_search_1"},"type":"tool_reference","type":"tool_definition"}}]}]}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","messages":[{"content":[{"tool":["tool_reference"]}]}]}`, tool + `"unreadable"`},
		{meter.Anthropic, `{"model":"m1","messages":[{"content":[[{"tool":{"definition":{"name":"x"}}}]]}]}`, tool + `"unreadable"`},
		{meter.Responses, `{"model":"m1","input":[[{"tools":[]}]]}`, tool + `"unreadable"`},
		{meter.Gemini, `{"generationConfig":{"maxOutputTokens":1,"maxOutputTokens":9}}`, `400 generationConfig: the body has the field "maxOutputTokens" twice`},
		{meter.Gemini, `{"generationConfig":null}`, ok},
		{meter.Gemini, `{"generationConfig":[]}`, "400 generationConfig: it is not JSON of the expected form"},
		{meter.Responses, `{"model":"m1","input":"words","tools":[{"type":"function"},{"type":"custom"},{"type":"local_shell"}],"background":false,"store":false}`, ok},
		{meter.Responses, `{"model":"m1","tools":[{"name":"of no type"}]}`, tool + `"unreadable"`},
		{meter.Responses, `{"model":"m1","tools":[1]}`, tool + `"unreadable"`},
		{meter.Responses, `{"model":"m1","tools":null,"service_tier":"auto"}`, ok},
		{meter.Responses, `{"model":"m1","tools":[` + strings.Repeat(`{"type":"namespace","tools":[`, 9) + strings.Repeat(`]}`, 9) + `]}`, tool + `"unreadable"`},
		{meter.Responses, `{"model":"m1","input":[{"tools":[],"tools":[{"type":"mcp"}]}]}`, tool + `"unreadable"`},
		{"unheard-of", `{"model":"m1","messages":[]}`, field + `"messages"`},
	}
	for _, tt := range tests {
		p := *rules(t).providers["openai-chat"]
		if known := rules(t).providers[string(tt.api)]; known != nil {
			p = *known
		} else {
			p.Fields = nil
		}
		v := &verdict{provider: &p, route: &p.Routes[0]}
		if tt.api == meter.Gemini {
			v.Model = "m1"
		}
		v.read([]byte(tt.body))
		got := "passes with model " + v.Model
		if v.Refused {
			got = show(v)
		}
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %.200s:\n got %s\nwant %s", tt.api, tt.body, got, tt.want)
		}
	}
}

func BenchmarkBody(b *testing.B) {
	turn := `{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("word ", 800) + `"}]},`
	body := []byte(`{"model":"m1","messages":[` + strings.Repeat(turn, 50) + `{"role":"user","content":"x"}]}`)
	p := rules(b).providers["anthropic"]
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		v := &verdict{provider: p, route: &p.Routes[0]}
		if v.read(body); v.Refused {
			b.Fatal(v.reason)
		}
	}
}

// passable are all paths that may reach an upstream.
var passable = []string{
	"/v1beta/models/m1:streamGenerateContent", "/v1beta/models/m1:generateContent", "/v1beta/models/m1:countTokens",
	"/v1beta/models/m2:streamGenerateContent", "/v1beta/models/m2:generateContent", "/v1beta/models/m2:countTokens",
	"/v1/messages", "/v1/messages/count_tokens", "/responses", "/chat/completions",
}

// FuzzDecide sends whatever net/http takes for a request: what passes has the
// token, and one of a few paths.
func FuzzDecide(f *testing.F) {
	for _, raw := range []string{
		"POST " + target + "?alt=sse HTTP/1.1\r\n" + goog + "\r\n",
		"POST " + target + "?key=" + callTok + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST http://evil/p1.1/anthropic/v1/messages HTTP/1.1\r\n" + xapi + "\r\n",
		"POST /p1.1/openai-chat/v1/../v1/chat/completions HTTP/1.1\r\n" + byAuth + "\r\n",
		"CONNECT registry.example:443 HTTP/1.1\r\nProxy-" + byAuth + "\r\n",
		"POST /p1.1/anthropic/v1/messages HTTP/1.1\r\n" + xapi + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		f.Add(raw)
	}
	r := rules(f)
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			return
		}
		v := r.decide(q)
		if v.Refused {
			if v.reason == "" || v.Status < 400 || v.local {
				t.Fatalf("refusal: got %+v, want one with a reason and a status of 400 or more, not local", v)
			}
			return
		}
		if !strings.Contains(raw, callTok) && !strings.Contains(raw, "Basic ") && !strings.Contains(strings.ToLower(raw), "basic") {
			t.Fatalf("request without the token: got %s, want a refusal", show(v))
		}
		switch {
		case v.Host != "":
			if v.Host != "registry.example:443" {
				t.Fatalf("host of a tunnel: got %q, want registry.example:443", v.Host)
			}
		case v.local:
		case !slices.Contains(passable, v.path) || v.query != "" && strings.Trim(v.query, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-~=&") != "":
			t.Fatalf("forwarded request: got %s?%s, want an allowed path and a plain query", v.path, v.query)
		}
	})
}

// FuzzBody: whichever of several equal names a program takes, and however it
// compares them, the model is an allowed one.
func FuzzBody(f *testing.F) {
	for _, body := range []string{`{"model":"m1"}`, `{"model":"m9","model":"m1"}`, `{"a":[{"b":"\"}"}],"mod\u0065l":"m2","tools":[{"type":"x"}]}`, `{"MODEL":"m1"}`, "{\"model\":\"m\xff1\"}"} {
		f.Add(body)
	}
	p := rules(f).providers["openai-chat"]
	f.Fuzz(func(t *testing.T, body string) {
		v := &verdict{provider: p, route: &p.Routes[0]}
		if v.read([]byte(body)); v.Refused {
			return
		}
		var folded struct{ Model string }
		if err := json.Unmarshal([]byte(body), &folded); err != nil || !slices.Contains(p.Models, folded.Model) {
			t.Fatalf("model of %q: got %q, error %v, want one of %q", body, folded.Model, err, p.Models)
		}
		d := json.NewDecoder(strings.NewReader(body))
		first, depth := "", 0
		for key := true; first == ""; {
			tok, err := d.Token()
			if err != nil {
				t.Fatalf("model in %q: got error %v, want a model", body, err)
			}
			switch tok {
			case json.Delim('{'), json.Delim('['):
				depth++
				key = true
			case json.Delim('}'), json.Delim(']'):
				depth--
				key = depth == 1
			default:
				if depth == 1 && key && tok == "model" {
					model, err := d.Token()
					if first, _ = model.(string); err != nil || !slices.Contains(p.Models, first) {
						t.Fatalf("first model of %q: got %v, error %v, want one of %q", body, model, err, p.Models)
					}
				}
				key = depth != 1 || !key
			}
		}
	})
}
