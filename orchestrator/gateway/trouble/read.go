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
	code    int      // its status, where it names one
	failed  bool     // it is an error at all
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
	raw := errorIn([]byte(text))
	switch string(raw) {
	case "", "null", "false", `""`, "{}": // a member that says that there is none
		return a
	}
	a.failed = true
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw, &inner) != nil {
		a.Message = word(raw)
		return a
	}
	a.Message = word(inner["message"])
	_ = json.Unmarshal(inner["code"], &a.code) // a word in other APIs than Google's
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

// errorIn is the error of an answer or of an event: a member of it, of the response
// that it tells the end of, or all of an event that is one.
func errorIn(text []byte) json.RawMessage {
	var outer struct {
		Type     string          `json:"type"`
		Error    json.RawMessage `json:"error"`
		Response struct {
			Error json.RawMessage `json:"error"`
		} `json:"response"`
	}
	if json.Unmarshal(text, &outer) != nil {
		return nil
	}
	switch {
	case len(outer.Error) > 0:
		return outer.Error
	case outer.Type == "error":
		return text
	}
	return outer.Response.Error
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
