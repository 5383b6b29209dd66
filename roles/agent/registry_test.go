package agent

import (
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, name := range Names() {
		if a, err := Find(name); err != nil || a.Name != name || a.Image == "" || a.DefaultModel == "" {
			t.Errorf("Find(%q): got %+v, error %v, want one with that name, an image and a model", name, a, err)
		}
	}
}

func TestUnknownAgent(t *testing.T) {
	tests := map[string]string{
		"gemni":  `cannot find the agent "gemni"; did you mean "gemini"?`,
		"Gemini": `cannot find the agent "Gemini"; did you mean "gemini"?`,
		"cursor": `cannot find the agent "cursor"; abl has gemini, claude, codex, copilot, scripted`,
		"":       `cannot find the agent ""; abl has gemini, claude, codex, copilot, scripted`,
	}
	for name, want := range tests {
		if _, err := Find(name); err == nil || err.Error() != want {
			t.Errorf("Find(%q): got error %v, want %s", name, err, want)
		}
	}
}

// A stored output is cut at the same limit as a live one.
func TestFeedCutsLongLines(t *testing.T) {
	var got lines
	Feed(&got, []byte("one\r\n\n"+strings.Repeat("x", MaxLine+1)+"\nlast"))
	want := []struct {
		size int
		cut  bool
	}{{3, false}, {0, false}, {MaxLine, true}, {4, false}}
	if len(got) != len(want) {
		t.Fatalf("lines: got %d, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].size != w.size || got[i].cut != w.cut {
			t.Errorf("line %d: got %+v, want %+v", i, got[i], w)
		}
	}
}

type lines []struct {
	size int
	cut  bool
}

func (l *lines) Line(line []byte, cut bool) []Message {
	*l = append(*l, struct {
		size int
		cut  bool
	}{len(line), cut})
	return nil
}

func (*lines) Result(int) Result { return Result{} }
