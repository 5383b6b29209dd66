package setup

import (
	"strings"
	"testing"

	"abl/images"
)

// The images of other versions of abl are one line, not one each.
func TestImageFindings(t *testing.T) {
	old := func(name string) images.State {
		return images.State{Name: name, Ref: "abl/" + name + ":old", Have: true, Old: true}
	}
	all := imageFindings([]images.State{{Name: "claude"}, {Name: "tools", Ref: "abl/tools:1", Have: true}, old("codex"), old("claude"), old("codex")})
	var got []string
	for _, f := range all {
		got = append(got, f.Text)
	}
	want := []string{
		"claude: not built yet; the first phase or `abl images build` builds it",
		"tools: abl/tools:1",
		"of other versions of abl or of projects: 1 claude, 2 codex; `abl images prune` deletes those that no project uses",
	}
	if text, wanted := strings.Join(got, "\n"), strings.Join(want, "\n"); text != wanted {
		t.Errorf("got\n%s\nwant\n%s", text, wanted)
	}
}
