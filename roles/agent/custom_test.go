package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCustomOutput(t *testing.T) {
	for _, tt := range []struct {
		path, out string
		exit      int
		want      string
	}{
		{"", "working\n{\"usage\":{\"input_tokens\":1}}\n", 0, "finished=true requests=-1"},
		{"usage", "working\n{\"usage\":{\"input_tokens\":5,\"output_tokens\":4,\"cached_tokens\":2,\"reasoning_tokens\":3}}\n", 0,
			"finished=true requests=-1 | m in=5 out=1 cached=2 thoughts=3 tool=- total=9"},
		{"a.b", `{"a":{"b":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":11}}}` + "\n{\"a\":7}\n{\"a\":{\"b\":[]}}\n{\n", 0,
			"finished=true requests=-1 | m in=5 out=6 cached=- thoughts=- tool=- total=11"},
		{"usage", `{"usage":{"input_tokens":50,"output_tokens":4}}` + "\n" + `{"usage":{"input_tokens":0,"output_tokens":6}}`, 0,
			"finished=true requests=-1 | m in=50 out=6 cached=- thoughts=- tool=- total=56"},
		{"usage", `{"usage":{"input_tokens":-5,"output_tokens":"x"}}`, 0, "finished=true requests=-1 | m in=- out=- cached=- thoughts=- tool=- total=-"},
		{"usage", "boom \x1b[31mred\n", 3, `finished=false requests=-1 "mine failed with exit code 3; its last line was: boom [31mred"`},
		{"", `{"type":"error","error":{"name":"APIError","data":{"message":"403 no"}}}`, 1, `finished=false requests=-1 "mine failed with exit code 1: 403 no"`},
		{"usage", `{"type":"error","error":{"name":"APIError","data":{"message":"403 no"}}}`, 1, `finished=false requests=-1 "mine failed with exit code 1: 403 no"`},
		{"usage", "", 137, `finished=false requests=-1 "mine failed with exit code 137"`},
	} {
		r := Custom(Agent{Name: "mine"}, Settings{Usage: tt.path}).NewReader(Call{Model: "m"})
		Feed(r, []byte(tt.out))
		if diff := cmp.Diff(tt.want, show(r.Result(tt.exit))); diff != "" {
			t.Errorf("%q (-want +got)\n%s", tt.out, diff)
		}
	}
}

// The answer of the user's own agent is the text in its records, or else its whole output.
func TestCustomAnswer(t *testing.T) {
	for _, tt := range []struct{ name, path, out, want string }{
		{"text beside records", "usage", "working\n{\"usage\":{\"input_tokens\":5}}\n", "working\n"},
		{"records alone", "usage", `{"type":"text","text":"LEARNING: x"}` + "\n" + `{"usage":{"input_tokens":5}}`, "LEARNING: x\n"},
		{"records of no known form", "usage", `{"answer":"LEARNING: x","usage":{"input_tokens":5}}`, `{"answer":"LEARNING: x","usage":{"input_tokens":5}}` + "\n"},
		{"records without a path", "", `{"type":"text","text":"a"}` + "\n" + `{"answer":"b"}`, "a\n{\"answer\":\"b\"}\n"},
		{"what comes after the last tool", "", `{"type":"text","text":"a"}` + "\n" + `{"type":"tool_use","name":"x"}` + "\n" + `{"type":"text","text":"b"}`, "b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Custom(Agent{Name: "mine"}, Settings{Usage: tt.path}).NewReader(Call{Model: "m"})
			Feed(r, []byte(tt.out))
			if got := r.Result(0).Said; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCustomCommand(t *testing.T) {
	const shell = `do-it --model "$ABL_MODEL"`
	a := Custom(Agent{Name: "mine"}, Settings{Command: shell, Env: map[string]string{"A": "b", "HOME": "/elsewhere"}})
	cmd, err := a.Command(Call{Role: "builder", Model: "m-1", Effort: "low", Prompt: "/abl/in/prompt.md"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sh", "-c", shell}, cmd.Argv); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := map[string]string{"A": "b", "HOME": "/elsewhere", "NO_COLOR": "1", "ABL_PROMPT": "/abl/in/prompt.md", "ABL_MODEL": "m-1", "ABL_EFFORT": "low", "ABL_ROLE": "builder"}
	if diff := cmp.Diff(want, cmd.Env); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if a.Image != "tools" || a.DefaultModel != "mine" || Custom(Agent{Image: "claude"}, Settings{}).Image != "claude" {
		t.Errorf("image, model and given image: got %q, %q, %q, want tools, mine, claude",
			a.Image, a.DefaultModel, Custom(Agent{Image: "claude"}, Settings{}).Image)
	}
	if _, err := a.FullName("-x"); err == nil {
		t.Error("error of the model -x: got none, want one")
	}
}
