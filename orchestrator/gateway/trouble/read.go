package trouble

import (
	"encoding/json"
	"slices"
	"strings"
)

// answer is an error as any of the APIs words it; what is missing is empty.
type answer struct {
	Message string
	words   []string // codes, types, states and reasons, in lower case
	delay   string   // Google's RetryInfo, as "30s"
	daily   bool     // the quota is one of a day
}

func (a answer) has(any ...string) bool {
	return slices.ContainsFunc(any, func(w string) bool { return slices.Contains(a.words, w) })
}

// detail is an entry of Google's error details.
type detail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"`
}

// read takes an error body apart. Some of Google's come as a list with one entry,
// and streams put an error behind "data: ".
func read(body []byte) (a answer) {
	text := strings.TrimSpace(string(body))
	text = strings.TrimSpace(strings.TrimPrefix(text, "data:"))
	if list := (*[]json.RawMessage)(nil); json.Unmarshal([]byte(text), &list) == nil && list != nil && len(*list) > 0 {
		text = string((*list)[0])
	}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal([]byte(text), &outer) != nil || len(outer.Error) == 0 {
		return a
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(outer.Error, &inner) != nil {
		a.Message = word(outer.Error)
		return a
	}
	a.Message = word(inner["message"])
	for _, name := range []string{"code", "type", "status"} {
		a.note(word(inner[name]))
	}
	var details []json.RawMessage
	_ = json.Unmarshal(inner["details"], &details) // other APIs have none, or another form
	for _, raw := range details {
		var d detail
		if json.Unmarshal(raw, &d) != nil {
			continue
		}
		a.note(d.Reason)
		if d.RetryDelay != "" {
			a.delay = d.RetryDelay
		}
		for _, v := range d.Violations {
			a.daily = a.daily || strings.Contains(strings.ToLower(v.QuotaID), "perday")
		}
	}
	return a
}

func (a *answer) note(w string) {
	if w != "" {
		a.words = append(a.words, strings.ToLower(w))
	}
}

// word is a JSON value when it is a text, else "".
func word(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
