// Package modelserver plays scripts in place of a model. It implements four APIs: Gemini,
// Anthropic Messages, OpenAI Responses and OpenAI Chat. A real agent CLI gets the function calls
// and the token counts of the script. The server has no state: the request contains the
// conversation so far. It refuses the requests that the documentation of the real API forbids.
package modelserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Script is the model's part in one conversation: the turns in order, one per request, and then
// the end.
type Script struct {
	Name  string // for the log
	Turns []Turn
	Final string // the text of the last response
	End   End
	Usage Usage // of the whole conversation
}

// Turn is one response that calls a function.
type Turn struct {
	Text string // sent before the call
	Name string // of the function
	Args map[string]any
}

// End is how a conversation ends after its turns.
type End string

// The ends of a conversation.
const (
	Stop     End = "stop"     // a text and the finish reason STOP
	Cut      End = "cut"      // a text without a finish reason
	Refuse   End = "refuse"   // an error that is not worth a retry
	NoAnswer End = "noanswer" // no response until the client gives up
)

// Source returns the script for a conversation, which it finds by the user's text. Errors are
// sent to the client.
type Source func(prompt string) (Script, error)

// Server is the HTTP handler.
type Server struct {
	Source Source
	Aside  Source    // scripts for requests without tools; nil if all get the same text
	Log    io.Writer // one line of JSON per request

	mu sync.Mutex
}

const maxBody = 64 << 20

// method matches the model and the method at the end of a path, after any prefix.
var method = regexp.MustCompile(`/v1(?:beta)?/models/([^/:]+):(\w+)$`)

// entry is one line of the log.
type entry struct {
	Model  string `json:"model,omitempty"`
	Method string `json:"method"`
	Script string `json:"script,omitempty"`
	Turn   int    `json:"turn,omitempty"` // starts at 1
	Of     int    `json:"of,omitempty"`
	Did    string `json:"did,omitempty"`
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
}

// ServeHTTP responds to one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := entry{Method: r.Method + " " + r.URL.Path, Status: http.StatusOK}
	err := s.answer(w, r, &e)
	if err != nil {
		e.Status, e.Error = err.code, err.message
		writeJSON(w, err.code, err.body())
	}
	line, _ := json.Marshal(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Log.Write(append(line, '\n'))
}

// apiError is an error in the format of the API.
type apiError struct {
	code            int
	status, message string
}

func invalid(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...)}
}

// body returns an error body that suits every API, because each client reads only its own fields.
func (e *apiError) body() map[string]any {
	return map[string]any{
		"type":  "error",
		"error": map[string]any{"code": e.code, "message": e.message, "status": e.status, "type": "invalid_request_error"},
	}
}

func hasKey(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, "/openai/") { // Azure's
		return r.Header.Get("api-key")+r.Header.Get("Authorization") != ""
	}
	return r.Header.Get("x-goog-api-key")+r.Header.Get("x-api-key")+r.Header.Get("Authorization")+r.URL.Query().Get("key") != ""
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *entry) *apiError {
	if !hasKey(r) {
		return &apiError{http.StatusUnauthorized, "UNAUTHENTICATED", "the request has no API key"}
	}
	if f := wireOf(r.URL.Path); f != nil && r.Method == http.MethodPost {
		return s.wire(w, r, e, f)
	}
	m := method.FindStringSubmatch(r.URL.Path)
	if m == nil || r.Method != http.MethodPost {
		return &apiError{http.StatusNotFound, "NOT_FOUND", "there is no such method"}
	}
	e.Model, e.Method = m[1], m[2]
	// The server notices that a client has disconnected only after reading the whole body.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var req request
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		return invalid("the request is not JSON of this API: %v", err)
	}
	switch m[2] {
	case "countTokens":
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": req.size() / 4})
		return nil
	case "generateContent", "streamGenerateContent":
		if fault := geminiRules.strict(r, body); fault != nil {
			return fault
		}
		return s.generate(w, r, &req, e)
	}
	return &apiError{http.StatusNotFound, "NOT_FOUND", "there is no method " + m[2]}
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}
