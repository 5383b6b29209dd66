package cli

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"phase", "run", "status", "costs", "clean", "--json"}
	for bad, want := range map[string]string{
		"phaze": "phase", "phsae": "phase", "Phase": "phase", "pase": "phase", "rn": "run", "runn": "run",
		"statsu": "status", "cost": "costs", "--jsno": "--json", "x": "", "walk": "", "": "", "größe": "",
	} {
		if got := nearest(bad, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", bad, got, want)
		}
	}
}

func TestDistanceLaws(t *testing.T) {
	words := []string{"", "a", "ab", "ba", "phase", "phsae", "pahse", "ünïcode", "costs"}
	for _, a := range words {
		for _, b := range words {
			ab, ba := distance([]rune(a), []rune(b)), distance([]rune(b), []rune(a))
			if ab != ba || (ab == 0) != (a == b) || ab > max(len([]rune(a)), len([]rune(b))) {
				t.Errorf("distance(%q, %q) = %d, back %d", a, b, ab, ba)
			}
		}
	}
}
