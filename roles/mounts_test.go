package roles

import (
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/state"
	"abl/prompts"
)

// The Verifier's prompt names its mounts and other writable places, and no other place of abl.
func TestVerifiersPromptListsMounts(t *testing.T) {
	said := prompts.Verifier
	for _, m := range Mounts(Verifier, state.NewProject("/p", "src", ".abl/tests"), Record{Dir: "/r"}) {
		target := m.Target
		if rest, ok := strings.CutPrefix(target, helper.Tests+"/"); ok {
			target = rest
		}
		at := strings.Index(said, "`"+target+"`")
		if at < 0 {
			t.Errorf("mount %s in the Verifier's prompt: got none, want one", m.Target)
			continue
		}
		line, _, _ := strings.Cut(said[at:], "\n")
		if m.ReadOnly && !strings.Contains(line, "read-only") {
			t.Errorf("line of the mount %s: got %q, want one with read-only", m.Target, line)
		}
	}
	for _, m := range (Spaces{}).Tmpfs(Verifier) {
		if !strings.Contains(said, "`"+m.Target+"`") {
			t.Errorf("tmpfs %s in the Verifier's prompt: got none, want one", m.Target)
		}
	}
	for _, place := range []string{helper.Src, ".env", ".abl/"} {
		if strings.Contains(said, place) {
			t.Errorf("path %s in the Verifier's prompt: got one, want none", place)
		}
	}
}
