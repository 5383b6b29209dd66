package modelserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var script = Script{
	Name: "builder",
	Turns: []Turn{
		{Name: "read_file", Args: map[string]any{"file_path": "/p"}},
		{Text: "I write.\n", Name: "write_file", Args: map[string]any{"file_path": "/w/a", "content": "<&>"}},
	},
	Final: "Done.",
	End:   Stop,
	Usage: Usage{Prompt: 100, Candidates: 10, Thoughts: 4, Cached: 50, Total: 114},
}

func source(prompt string) (Script, error) {
	if !strings.Contains(prompt, "mark") {
		return Script{}, errors.New("no mark")
	}
	return script, nil
}

// talk returns a conversation in which the client has executed this many functions.
func talk(done int) string {
	contents := []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": "the mark"}}}}
	for range done {
		contents = append(contents,
			map[string]any{"role": "model", "parts": []any{map[string]any{"functionCall": map[string]any{"name": "f"}}}},
			map[string]any{
				"role":  "user",
				"parts": []any{map[string]any{"functionResponse": map[string]any{"name": "f", "response": map[string]any{}}}},
			})
	}
	body, _ := json.Marshal(map[string]any{
		"contents": contents,
		"tools":    []any{map[string]any{"functionDeclarations": []any{map[string]any{"name": "read_file"}}}},
	})
	return string(body)
}

func ask(t *testing.T, s *Server, path, body string) *http.Response {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for name, value := range map[string]string{
		"x-goog-api-key":    "dummy",
		"Content-Type":      "application/json; charset=utf-8",
		"anthropic-version": "2023-06-01",
	} {
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w.Result()
}

type answer struct {
	Candidates []struct {
		Content struct {
			Role  string
			Parts []struct {
				Text         string
				FunctionCall *struct {
					Name string
					Args map[string]any
				}
			}
		}
		FinishReason string
	}
	UsageMetadata *struct {
		PromptTokenCount, CandidatesTokenCount, TotalTokenCount, ThoughtsTokenCount, CachedContentTokenCount int64
	}
	ModelVersion string
}

// events reads an event stream.
func events(t *testing.T, r io.Reader) []answer {
	t.Helper()
	var all []answer
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var a answer
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// Three requests play the whole script, and their token counts add up to the script's usage.
func TestStreamedResponsesFollowTheScript(t *testing.T) {
	var log bytes.Buffer
	s := &Server{Source: source, Log: &log}
	var total Usage
	var did []string
	for done := range 3 {
		resp := ask(t, s, "/s/prefix/v1beta/models/gemini-x:streamGenerateContent?alt=sse", talk(done))
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("response: got %s %s, want 200 and an event stream", resp.Status, resp.Header)
		}
		all := events(t, resp.Body)
		for i, a := range all {
			last := i == len(all)-1
			if (a.UsageMetadata != nil) != last || (a.Candidates[0].FinishReason == "STOP") != last || a.ModelVersion != "gemini-x" {
				t.Errorf("chunk %d of %d: got %+v, want model gemini-x, and usage and STOP only in the last",
					i, len(all), a)
			}
			for _, p := range a.Candidates[0].Content.Parts {
				if p.FunctionCall != nil {
					did = append(did, p.FunctionCall.Name)
				} else if p.Text != "" {
					did = append(did, p.Text)
				}
			}
			if u := a.UsageMetadata; u != nil {
				total.Prompt += u.PromptTokenCount
				total.Candidates += u.CandidatesTokenCount
				total.Thoughts += u.ThoughtsTokenCount
				total.Cached += u.CachedContentTokenCount
				total.Total += u.TotalTokenCount
			}
		}
	}
	if diff := cmp.Diff([]string{"read_file", "I write.\n", "write_file", "Done."}, did); diff != "" {
		t.Errorf("actions (-want +got)\n%s", diff)
	}
	if total != script.Usage {
		t.Errorf("usage: got %+v, want %+v", total, script.Usage)
	}
	want := `{"model":"gemini-x","method":"streamGenerateContent","script":"builder","turn":1,"of":3,"did":"read_file","status":200}
{"model":"gemini-x","method":"streamGenerateContent","script":"builder","turn":2,"of":3,"did":"write_file","status":200}
{"model":"gemini-x","method":"streamGenerateContent","script":"builder","turn":3,"of":3,"did":"stop","status":200}
`
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
}

func TestGenerateContent(t *testing.T) {
	resp := ask(t, &Server{Source: source, Log: io.Discard}, "/v1beta/models/m:generateContent", talk(9))
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if c := a.Candidates[0]; c.FinishReason != "STOP" || c.Content.Parts[0].Text != "Done." || a.UsageMetadata == nil {
		t.Errorf("response: got %+v, want Done. with STOP and usage", a)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name, method, path, key, body string
		want                          int
	}{
		{"no-key", "POST", "/v1beta/models/m:generateContent", "", talk(0), 401},
		{"key-as-parameter", "POST", "/v1beta/models/m:generateContent?key=k", "", talk(0), 200},
		{"method", "GET", "/v1beta/models/m:generateContent", "k", "", 404},
		{"path", "POST", "/v1beta/models", "k", "{}", 404},
		{"what", "POST", "/v1beta/models/m:embedContent", "k", "{}", 404},
		{"no-JSON", "POST", "/v1beta/models/m:generateContent", "k", "nothing", 400},
		{"no-mark", "POST", "/v1beta/models/m:generateContent", "k", "{}", 400},
		{"count", "POST", "/v1beta/models/m:countTokens", "k", talk(0), 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body))
			req.Header.Set("Content-Type", "application/json")
			if tt.key != "" {
				req.Header.Set("x-goog-api-key", tt.key)
			}
			w := httptest.NewRecorder()
			(&Server{Source: source, Log: io.Discard}).ServeHTTP(w, req)
			if w.Code != tt.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.want)
			}
			var e struct{ Error struct{ Code int } }
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || tt.want != 200 && e.Error.Code != tt.want {
				t.Errorf("got body %s, want code %d", w.Body, tt.want)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	old := script
	defer func() { script = old }()
	s := &Server{Source: source, Log: io.Discard}
	script.End = Refuse
	if resp := ask(t, s, "/v1beta/models/m:streamGenerateContent", talk(2)); resp.StatusCode != 400 {
		t.Errorf("status of a refusal: got %s, want 400", resp.Status)
	}
	script.End = Cut
	all := events(t, ask(t, s, "/v1beta/models/m:streamGenerateContent", talk(2)).Body)
	if last := all[len(all)-1]; last.Candidates[0].FinishReason != "" || last.UsageMetadata == nil {
		t.Errorf("last chunk of a cut response: got %+v, want usage and no finish reason", last)
	}
}

// A request without a response ends when the client disconnects.
func TestNoAnswer(t *testing.T) {
	old := script
	defer func() { script = old }()
	script.End = NoAnswer
	asked, ended := make(chan struct{}), make(chan struct{})
	inner := &Server{Log: io.Discard, Source: func(prompt string) (Script, error) {
		defer close(asked)
		return source(prompt)
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		inner.ServeHTTP(w, r)
	}))
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1beta/models/m:generateContent?key=k", strings.NewReader(talk(2)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	go func() { <-asked; leave() }()
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Error("got a response, want none")
	}
	<-ended
}

func TestSchema(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{"type":"object","properties":{"reasoning":{"type":"string"},"next":{"enum":["user","model"]},"n":{"type":"integer","minimum":3}}}`,
			`{"n":3,"next":"user","reasoning":"scripted"}`},
		{`{"type":"OBJECT","properties":{"ok":{"type":"BOOLEAN"},"list":{"type":"ARRAY","items":{"type":"STRING"},"minItems":2}}}`,
			`{"list":["scripted","scripted"],"ok":false}`},
		{`{"type":["string","null"]}`, `"scripted"`},
		{`{"anyOf":[{"type":"array"},{"type":"null"}]}`, `[]`},
		{`{"const":7}`, `7`},
		{`{"type":"array","minItems":1}`, `[null]`},
		{`{}`, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.schema, func(t *testing.T) {
			body := `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"responseJsonSchema":` + tt.schema + `}}`
			resp := ask(t, &Server{Source: source, Log: io.Discard}, "/v1beta/models/m:generateContent", body)
			var a answer
			if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
				t.Fatal(err)
			}
			if got := a.Candidates[0].Content.Parts[0].Text; got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.schema, got, tt.want)
			}
		})
	}
}

func FuzzUsageAddsUp(f *testing.F) {
	f.Add(int64(1200), int64(300), int64(0), 7)
	f.Add(int64(0), int64(1), int64(2), 1)
	f.Fuzz(func(t *testing.T, prompt, candidates, total int64, n int) {
		if n < 1 || n > 1000 || min(prompt, candidates, total) < 0 || max(prompt, candidates, total) > math.MaxInt32 {
			return
		}
		u := Usage{Prompt: prompt, Candidates: candidates, Total: total}
		var sum Usage
		for k := range n {
			p := u.part(k, n)
			if p.Prompt < 0 || p.Candidates < 0 || p.Total < 0 {
				t.Fatalf("share %d of %d: got %+v, want no negative count", k, n, p)
			}
			sum.Prompt += p.Prompt
			sum.Candidates += p.Candidates
			sum.Total += p.Total
		}
		if total == 0 {
			u.Total = prompt + candidates
		}
		if sum != u {
			t.Errorf("got %+v, want %+v", sum, u)
		}
	})
}
