package helper

import "testing"

func TestFreshReport(t *testing.T) {
	before := map[string]int64{"phase1_v1_a.md": 1, "phase1_v2_old.md": 1}
	for _, c := range []struct {
		name string
		now  map[string]int64
		want string
	}{
		{"none", nil, ""},
		{"only-the-old-ones", before, ""},
		{"of-another-iteration", map[string]int64{"phase1_v1_b.md": 2}, ""},
		{"of-another-phase", map[string]int64{"phase12_v2_b.md": 2}, ""},
		{"no-report", map[string]int64{"phase1_v2_b.txt": 2}, ""},
		{"a-new-one", map[string]int64{"phase1_v2_old.md": 1, "Phase1_V2_new.MD": 2}, "Phase1_V2_new.MD"},
		{"an-old-one-written-again", map[string]int64{"phase1_v2_old.md": 2}, "phase1_v2_old.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FreshReport(1, 2, before, c.now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
