package setup

import (
	"strings"
	"testing"

	"abl/images"
)

// The missing images and those of other versions of abl are one line each.
func TestImageFindings(t *testing.T) {
	old := func(name string) images.State {
		return images.State{Name: name, Ref: "abl/" + name + ":old", Have: true, Old: true}
	}
	all := imageFindings([]images.State{{Name: "gemini"}, {Name: "claude"}, {Name: "gemini"}, {Name: "tools", Ref: "abl/tools:1", Have: true}, old("codex"), old("claude"), old("codex")})
	var got []string
	for _, f := range all {
		got = append(got, f.Text)
	}
	want := []string{
		"tools: abl/tools:1",
		"not built yet: claude, gemini; the first phase that needs one builds it",
		"of other versions of abl or of projects: 1 claude, 2 codex; `abl images prune` deletes those that no project uses",
	}
	if text, wanted := strings.Join(got, "\n"), strings.Join(want, "\n"); text != wanted {
		t.Errorf("got\n%s\nwant\n%s", text, wanted)
	}
}
