package witness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Reading is what abl reads of a contract, in the words of its author.
type Reading struct {
	Requests []string `json:"requests,omitempty"` // alternatives: method, path, query, body and headers
	Statuses []string `json:"statuses,omitempty"` // alternatives: 404, 200-299, or exit codes
	// Answer lists the compared parts of the rest of the response, or of a program's output.
	Answer []string `json:"answer,omitempty"`
	Open   []string `json:"open,omitempty"` // parts with any value
}

// Reading lists what abl compares of a contract, in the words of the contract's author.
func (c Claim) Reading() (all Reading) {
	for _, s := range c.statuses {
		all.Statuses = append(all.Statuses, s.String())
	}
	if c.program {
		run := "each run"
		if len(c.words) > 0 {
			run = "runs with " + strings.Join(c.words, " ")
		}
		all.Requests = []string{run}
		all.Answer = c.readOfRun()
		return all
	}
	for _, r := range c.requests {
		all.Requests = append(all.Requests, r.String())
		for _, s := range r.segments {
			if s.open || s.id {
				all.Open = append(all.Open, s.text+" in the path")
			}
		}
	}
	for _, r := range c.requests {
		if r.before != nil {
			all.Requests[0] += ", after " + r.before.String()
			break
		}
	}
	for _, h := range c.headers {
		all.Answer = append(all.Answer, h.String())
	}
	if c.json != nil {
		is, open := c.json.reading("")
		all.Answer, all.Open = append(all.Answer, is...), append(all.Open, open...)
	}
	for _, text := range c.texts {
		all.Answer = append(all.Answer, text.reading())
	}
	if c.form.empty {
		all.Answer = append(all.Answer, "no body")
	}
	if c.form.json {
		all.Answer = append(all.Answer, "a JSON document")
	}
	if c.next != nil {
		r := c.next.Reading()
		all.Answer = append(all.Answer, "then "+strings.Join(append(r.Requests[:1], slices.Concat(r.Statuses, r.Answer)...), ": "))
	}
	return all
}

// readOfRun lists what abl compares of the output and the files of a run.
func (c Claim) readOfRun() (all []string) {
	for _, on := range c.silent {
		all = append(all, "nothing on "+string(on))
	}
	if c.json != nil {
		all = append(all, "standard output is "+c.json.text())
	}
	for _, p := range c.printed {
		sign, as := map[bool]string{true: "not "}[p.absent], "the text "
		if p.line {
			as = "the line "
		}
		all = append(all, sign+as+p.String()+" in "+string(p.on))
	}
	if c.leaves && len(all) == 0 {
		all = []string{"output and files"}
	}
	return all
}

// String returns the request on one line.
func (r request) String() string {
	text := strings.Join(r.methods, "|") + " " + r.path
	if r.path == "" {
		text += "/"
	}
	if len(r.query) > 0 {
		text += "?" + r.query.Encode()
	}
	if r.body != nil {
		text += " " + r.body.text()
	}
	for _, h := range r.headers {
		text += ", header " + strings.TrimSpace(h.name+" "+h.has)
	}
	if w := r.words.String(); w != "" {
		text += ", " + w
	}
	if len(r.lacks) > 0 {
		text += ", without " + strings.Join(r.lacks, ", ")
	}
	return text
}

// reading describes the text.
func (p bodyText) reading() string {
	switch {
	case p.absent:
		return "not the text " + p.String()
	case p.whole:
		return "the body is " + p.String()
	}
	return "the text " + p.String()
}

// text returns the document as JSON, with an ellipsis for open values.
func (v shape) text() string {
	var all []string
	switch {
	case v.fields != nil:
		for _, f := range v.fields {
			all = append(all, fmt.Sprintf("%q: %s", f.key, f.text()))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case v.items != nil:
		for _, item := range v.items {
			all = append(all, item.text())
		}
		if v.more {
			all = append(all, "…")
		}
		return "[" + strings.Join(all, ", ") + "]"
	case v.any:
		return "…"
	}
	if text, ok := v.of.(string); ok {
		return written{text, v.vars}.String()
	}
	data, _ := json.Marshal(v.of) // decode returned it
	return string(data)
}

// reading describes each value of a document and lists the open ones. at is the path of v.
func (v shape) reading(at string) (is, open []string) {
	add := func(value shape, at string) {
		more, others := value.reading(at)
		is, open = append(is, more...), append(open, others...)
	}
	name := at
	if name == "" {
		name = "the body"
	}
	switch {
	case v.fields != nil:
		for _, f := range v.fields {
			add(f.shape, strings.TrimPrefix(at+"."+f.key, "."))
		}
	case v.items != nil && len(v.items) == 0 && !v.more:
		return []string{name + " is []"}, nil
	case v.items != nil && len(v.items) == 0:
		return []string{name + " is a list"}, nil
	case v.items != nil:
		for _, item := range v.items {
			add(item, at+"[]")
		}
	case v.any:
		return []string{name + " exists"}, []string{name}
	default:
		return []string{name + " is " + v.text()}, nil
	}
	return is, open
}
