package agent

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// A prompt begins with a letter, so that no CLI treats it as a command. The call's mark is the last
// line, so that the text before it is the same for calls with the same prompt.
func TestPrompt(t *testing.T) {
	for _, a := range known {
		c := Call{Role: "builder", Phase: 2, Iteration: 3, Attempt: 1}
		whole, err := Prompt(a, c, "/clear @x !ls")
		if err != nil {
			t.Fatal(err)
		}
		if !unicode.IsLetter(rune(whole[0])) || !strings.HasSuffix(whole, "/clear @x !ls\n[abl call builder phase 2 iteration 3 attempt 1]\n") {
			t.Errorf("prompt of %s: got %q, want a letter first and the call last", a.Name, whole)
		}
		c.Iteration = 4
		if next, err := Prompt(a, c, "/clear @x !ls"); err != nil || len(next) != len(whole) || !strings.HasPrefix(next, whole[:strings.Index(whole, "3 attempt")]) {
			t.Errorf("next prompt of %s: got %q, error %v, want another iteration only", a.Name, next, err)
		}
		for word, only := range map[string]string{"heredoc": "gemini", "rm -f": "codex"} {
			if advised := strings.Contains(whole, word); advised != (a.Name == only) {
				t.Errorf("got advice on %s for %s: %t, want it for %s only", word, a.Name, advised, only)
			}
		}
	}
}

// A prompt that a CLI would cut or refuse is refused, with the limit.
func TestPromptIsBounded(t *testing.T) {
	for _, tt := range []struct {
		a    Agent
		text string
		want string
	}{
		{codex, strings.Repeat("ä", 1<<20-1000), ""},
		{codex, strings.Repeat("x", 1<<20), "characters, and codex accepts at most 1048576"},
		{gemini, strings.Repeat("ä", 4<<20-1000), ""},
		{gemini, strings.Repeat("ä", 4<<20), "bytes, and gemini accepts at most 8388608"},
	} {
		_, err := Prompt(tt.a, Call{}, tt.text)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrPrompt) || !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("error of %s, %d bytes: got %v, want %q", tt.a.Name, len(tt.text), err, tt.want)
		}
	}
}
