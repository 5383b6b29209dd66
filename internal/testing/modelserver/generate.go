package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// reply is the content of one response.
type reply struct {
	model  string
	id     string
	parts  []map[string]any
	finish string
	usage  Usage
}

// generate sends the next turn of the conversation.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, req *request, e *entry) *apiError {
	rep := reply{model: e.Model, finish: "STOP"}
	if raw := req.schema(); raw != nil {
		var want schema
		if err := json.Unmarshal(raw, &want); err != nil {
			return invalid("the response schema cannot be read: %v", err)
		}
		text, err := json.Marshal(want.instance(0))
		if err != nil {
			return invalid("the response schema cannot be answered: %v", err)
		}
		e.Did, rep.id = "schema", "schema"
		rep.parts = []map[string]any{{"text": string(text)}}
		rep.send(w, e.Method)
		return nil
	}
	script, at, all, fault := s.pick(req, e)
	if fault != nil {
		return fault
	}
	rep.id = fmt.Sprintf("%s, answer %d", script.Name, at+1)
	rep.usage = script.Usage.part(at, all)
	if at < len(script.Turns) {
		turn := script.Turns[at]
		e.Did = turn.Name
		if turn.Text != "" {
			rep.parts = append(rep.parts, map[string]any{"text": turn.Text})
		}
		rep.parts = append(rep.parts, map[string]any{"functionCall": map[string]any{"name": turn.Name, "args": turn.Args}})
		rep.send(w, e.Method)
		return nil
	}
	e.Did = string(script.End)
	rep.parts = []map[string]any{{"text": script.Final}}
	switch script.End {
	case Refuse:
		return invalid("the script ends this call with an error")
	case NoAnswer:
		<-r.Context().Done()
		return nil
	case Cut:
		rep.finish = ""
	}
	rep.send(w, e.Method)
	return nil
}

// spoken is what pick reads of a conversation.
type spoken interface {
	prompt() string
	done() int
}

// pick returns the script of a conversation, the index of the next response, and the number of
// responses.
func (s *Server) pick(t spoken, e *entry) (script Script, at, all int, fault *apiError) {
	script, err := s.Source(t.prompt())
	if err != nil {
		return script, 0, 0, invalid("%v", err)
	}
	all = len(script.Turns) + 1
	at = min(t.done(), all-1)
	e.Script, e.Turn, e.Of = script.Name, at+1, all
	return script, at, all, nil
}

// send writes the whole response. For streamGenerateContent it writes events, the last one with
// the usage.
func (rep reply) send(w http.ResponseWriter, method string) {
	if method == "generateContent" {
		writeJSON(w, http.StatusOK, rep.chunk(rep.parts, rep.finish, true))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range rep.parts {
		rep.event(w, rep.chunk(rep.parts[i:i+1], "", false))
	}
	rep.event(w, rep.chunk([]map[string]any{{"text": ""}}, rep.finish, true))
}

func (rep reply) event(w http.ResponseWriter, chunk map[string]any) {
	data, err := json.Marshal(chunk)
	if err != nil {
		return
	}
	fmt.Fprintf(w, "data: %s\r\n\r\n", data)
	_ = http.NewResponseController(w).Flush()
}

func (rep reply) chunk(parts []map[string]any, finish string, last bool) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	c := map[string]any{"candidates": []any{candidate}, "modelVersion": rep.model, "responseId": rep.id}
	if last {
		c["usageMetadata"] = rep.usage.metadata()
	}
	return c
}
