package failpoint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// action is what happens at a place.
type action struct {
	what   string
	number int
	text   string
	times  int // 0 means always
}

var (
	placeForm  = regexp.MustCompile(`^[a-z0-9._-]+$`)
	actionForm = regexp.MustCompile(`^(?:([1-9][0-9]{0,8})\*)?([a-z]+)(?:\(([^()]*)\))?$`)
)

// parse parses the value of ABL_FAILPOINTS. It returns nil for an empty value.
func parse(spec string) (*points, error) {
	if spec == "" {
		return nil, nil
	}
	p := &points{left: map[string][]action{}}
	for term := range strings.SplitSeq(spec, ";") {
		name, chain, _ := strings.Cut(term, "=")
		if !placeForm.MatchString(name) {
			return nil, fmt.Errorf("want PLACE=ACTION, got %q", term)
		}
		if p.left[name] != nil {
			return nil, fmt.Errorf("duplicate place %s", name)
		}
		for text := range strings.SplitSeq(chain, "->") {
			a, err := parseAction(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			p.left[name] = append(p.left[name], a)
		}
	}
	return p, nil
}

func parseAction(text string) (action, error) {
	m := actionForm.FindStringSubmatch(text)
	if m == nil {
		return action{}, fmt.Errorf("unknown action %q", text)
	}
	a := action{what: m[2], text: m[3]}
	a.times, _ = strconv.Atoi(m[1]) // without a number it stays 0, which means always
	switch {
	case a.what == "exit" || a.what == "sleep":
		n, err := strconv.Atoi(a.text)
		if err != nil || n < 0 {
			return action{}, fmt.Errorf("%s needs a number, got %q", a.what, a.text)
		}
		a.number = n
	case a.what == "error":
	case !slices.Contains([]string{"off", "kill", "term", "int", "note", "pause"}, a.what):
		return action{}, fmt.Errorf("unknown action %q", text)
	case strings.Contains(text, "("):
		return action{}, fmt.Errorf("%s takes no argument", a.what)
	}
	return a, nil
}
