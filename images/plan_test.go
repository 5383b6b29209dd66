package images

import "testing"

func TestPlan(t *testing.T) {
	chain := []recipe{
		{name: "base", ref: "abl/base:b"},
		{name: "tools", ref: "abl/tools:t", parent: "abl/base:b"},
		{name: "gemini", ref: "abl/gemini:g", parent: "abl/tools:t"},
		{name: "run-gemini", ref: "abl/run-gemini:r", parent: "abl/gemini:g"},
	}
	const (
		base   = "make abl/base:b from nothing: needed by abl/tools:t\n"
		tools  = "make abl/tools:t from abl/base:b: needed by abl/gemini:g\n"
		gemini = "make abl/gemini:g from abl/tools:t: needed by abl/run-gemini:r\n"
		run    = "make abl/run-gemini:r from abl/gemini:g: missing\n"
	)
	for name, c := range map[string]struct {
		have []string
		want string
	}{
		"nothing there":           {nil, base + tools + gemini + run},
		"all there":               {[]string{"abl/base:b", "abl/tools:t", "abl/gemini:g", "abl/run-gemini:r"}, ""},
		"helper changed":          {[]string{"abl/base:b", "abl/tools:t", "abl/gemini:g", "abl/run-gemini:old"}, run},
		"the top alone":           {[]string{"abl/run-gemini:r"}, ""},
		"base removed, tools not": {[]string{"abl/tools:t"}, gemini + run},
		"only others'":            {[]string{"debian:bookworm-slim"}, base + tools + gemini + run},
	} {
		if got := show(plan(c.have, chain...)); got != c.want {
			t.Errorf("%s: plan\n%swant\n%s", name, got, c.want)
		}
	}
}
