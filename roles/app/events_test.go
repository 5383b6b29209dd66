package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/rolestest"
)

// TestEndsOf checks how abl reads the ends that the app's container recorded. A missing or too large
// record is an end, too.
func TestEndsOf(t *testing.T) {
	const up = `{"event":"listening"}` + "\n" + `{"event":"ready","name":"app"}` + "\n"
	for _, c := range []struct{ name, events, broke, other string }{
		{"none", up + `{"event":"command","name":"seed","exit":7}`, "", ""},
		{"a crash", up + `{"event":"exited","name":"app","exit":139,"ms":1500}`, "the app ended on its own with exit code 139, 1.5s after its start", ""},
		{"a good end", up + `{"event":"exited","name":"app","exit":0}`, "", "the app ended on its own with exit code 0, 0.0s after its start"},
		{"a background command", up + `{"event":"exited","name":"serve","exit":2}`, "what abl-cmd serve started ended on its own with exit code 2, 0.0s after its start", ""},
		{"an invalid name", up + `{"event":"exited","name":"const key = 1","exit":2}`, "the app ended on its own with exit code 2, 0.0s after its start", ""},
		{"a restart that fails", up + `{"event":"failed","name":"app","exit":3,"detail":"x"}`, "the app was restarted and ended on its own with exit code 3", ""},
		{"a declared command's", up + `{"event":"exited","name":"app","exit":137,"asked":true}`, "", "a declared command ended the app with exit code 137"},
		{"wiped out", "", "abl's record of it was deleted or flooded from inside its container", ""},
		{"flooded", up + strings.Repeat("x", maxEvents), "abl's record of it was deleted or flooded from inside its container", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := state.NewProject(t.TempDir(), "src", "tests")
			if ends, err := EndsOf(p, "k"); err != nil || len(ends.Broke)+len(ends.Other) > 0 {
				t.Errorf("ends of a call without an app: got %v, error %v, want none", ends, err)
			}
			dir := filepath.Join(p.Call("k"), "app")
			rolestest.Must(t, os.MkdirAll(dir, 0o755))
			rolestest.Must(t, os.WriteFile(filepath.Join(dir, "events"), []byte(c.events), 0o644))
			ends, err := EndsOf(p, "k")
			rolestest.Must(t, err)
			if broke, other := strings.Join(ends.Broke, "; "), strings.Join(ends.Other, "; "); broke != c.broke || other != c.other {
				t.Errorf("ends: got broke %q, other %q, want %q, %q", broke, other, c.broke, c.other)
			}
		})
	}
}
