package agent

import (
	"encoding/json"

	"abl/internal/tokens"
)

// geminiDocument is what the CLI prints with -o json: one document at the end.
// abl does not ask for it, because a failed run prints none, but a person may
// have one at hand.
type geminiDocument struct {
	SessionID string       `json:"session_id"`
	Error     *geminiError `json:"error"`
	Stats     *struct {
		Models map[string]struct {
			API struct {
				Requests count `json:"totalRequests"`
			} `json:"api"`
			Tokens struct {
				Prompt     count `json:"prompt"`
				Candidates count `json:"candidates"`
				Cached     count `json:"cached"`
				Thoughts   count `json:"thoughts"`
				Tool       count `json:"tool"`
				Total      count `json:"total"`
			} `json:"tokens"`
		} `json:"models"`
		Tools struct {
			Calls count `json:"totalCalls"`
		} `json:"tools"`
	} `json:"stats"`
}

// geminiWhole reads the document, if stdout is one.
func geminiWhole(stdout []byte, exit int) (Result, bool) {
	var doc geminiDocument
	if json.Unmarshal(stdout, &doc) != nil || doc.Stats == nil {
		return Result{}, false
	}
	res := Result{Session: label(doc.SessionID, maxName)}
	for model, m := range doc.Stats.Models {
		res.Usage = append(res.Usage, Usage{
			Model: label(model, maxName),
			Count: tokens.Count{Input: m.Tokens.Prompt.n, Candidates: m.Tokens.Candidates.n, Cached: m.Tokens.Cached.n, Thoughts: m.Tokens.Thoughts.n, Tool: m.Tokens.Tool.n, Total: m.Tokens.Total.n},
		})
		if m.API.Requests.n != nil {
			res.Requests += *m.API.Requests.n
		}
	}
	sorted(res.Usage)
	res.Reason = doc.reason(res, exit)
	res.Finished = res.Reason == ""
	return res, true
}

func (d geminiDocument) reason(res Result, exit int) string {
	switch {
	case d.Error != nil:
		return geminiSaid(exit, d.Error.Message)
	case exit != 0:
		return "gemini failed: " + geminiExit(exit)
	case res.Requests == 0:
		return "gemini ended without a model request"
	}
	return unmoved(res.Usage, d.Stats.Tools.Calls)
}
