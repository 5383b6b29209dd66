package witness

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// String returns the content of a claim on one line.
func (c Claim) String() string {
	var parts []string
	for _, r := range c.requests {
		p := strings.Join(r.methods, "|") + " " + r.path + "/"
		if len(r.query) > 0 {
			p += "?" + r.query.Encode()
		}
		if r.body != nil {
			p += " " + r.body.String()
		}
		for _, h := range r.headers {
			p += " " + h.name + "=" + h.has
		}
		if r.before != nil {
			p += " after " + r.before.String()
		}
		for _, name := range r.lacks {
			p += " -" + name
		}
		parts = append(parts, p)
	}
	parts = append(parts, fmt.Sprint(c.statuses))
	for _, h := range c.headers {
		sign := map[bool]string{true: "!"}[h.absent]
		parts = append(parts, sign+h.name+"="+h.value.text)
	}
	for _, t := range c.texts {
		sign := map[bool]string{true: "!"}[t.absent] + map[bool]string{true: "="}[t.whole]
		parts = append(parts, sign+t.String())
	}
	if c.form.empty {
		parts = append(parts, "empty")
	}
	if c.form.json {
		parts = append(parts, "JSON")
	}
	if c.json != nil {
		parts = append(parts, c.json.String())
	}
	if c.next != nil {
		parts = append(parts, "then", c.next.String())
	}
	return strings.Join(parts, " ")
}

func (v shape) String() string {
	var all []string
	switch {
	case v.any:
		return "*"
	case v.echoed:
		return fmt.Sprintf("~%q", v.of)
	case v.fields != nil:
		for _, f := range v.fields {
			all = append(all, f.key+":"+f.shape.String())
		}
		return "{" + strings.Join(all, ",") + "}"
	case v.items != nil:
		for _, i := range v.items {
			all = append(all, i.String())
		}
		if v.more {
			all = append(all, "...")
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	if text, ok := v.of.(string); ok {
		return written{text, v.vars}.String()
	}
	return fmt.Sprint(v.of)
}

// ReadClaim rejects a contract that is too long without reading it.
func TestLongClaim(t *testing.T) {
	if c, ok := ReadClaim("", "GET /a", "200 "+strings.Repeat(`and "x" `, 300)); ok {
		t.Errorf("ReadClaim of a long contract: got %.100s, want none", c)
	}
}

// testdata/claims.txt has one contract per line, each followed by its claim.
func TestReadClaim(t *testing.T) {
	data, err := os.ReadFile("testdata/claims.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || line[0] == '#' {
			continue
		}
		t.Run(rowName(line), func(t *testing.T) {
			action, result, _ := strings.Cut(line, " → ")
			under, rest, ok := strings.Cut(action, " | ")
			if ok {
				action = rest
			} else {
				under = ""
			}
			got := "not checkable"
			if c, ok := ReadClaim(under, action, result); ok {
				got = c.String()
			}
			if want := strings.TrimSpace(lines[i+1]); got != want {
				t.Errorf("claim: got %s, want %s", got, want)
			}
		})
		i++
	}
}

// Clients of a proxy send the app's address before the path.
func TestAbsoluteTarget(t *testing.T) {
	for _, c := range []struct {
		action, target string
		want           bool
	}{
		{"GET /notes/N", "http://app:3000/notes/1", true},
		{"GET /notes/N", "http://app:3000/links/1", false},
		{"GET /notes/N", "/http://app:3000/notes/1", false},
		{"GET /", "http://app:3000", true},
		{"GET /notes?q=a", "http://app:3000/notes?q=a", true},
		{"GET /notes?q=a", "http://app:3000/notes?q=b", false},
		{"GET /notes/N", "https://app/notes/1", true},
	} {
		t.Run(rowName(c.action+" by "+c.target), func(t *testing.T) {
			claim, _ := ReadClaim("", c.action, "200")
			if got := claim.Asked(Exchange{Method: "GET", Target: c.target}); got != c.want {
				t.Errorf("Asked: got %v, want %v", got, c.want)
			}
		})
	}
}
