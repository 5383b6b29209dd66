package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// world is one of all combinations of results for one contract.
type world struct {
	claims  Claims
	absence bool
	alone   bool
	doubt   bool   // about the last replay against the app
	real    string // a letter per replay against the app
	neg     [3]byte
	waived  Waived
}

func (w world) suite(made map[string]Run) Suite {
	s := Suite{Contracts: []Contract{{ID: "P1.C1", Says: "a → b", Absence: w.absence}}, Unreported: w.alone, Waived: w.waived}
	for i := range w.real {
		s.Real = append(s.Real, made[w.real[i:i+1]])
	}
	if n := len(s.Real); w.doubt && n > 0 {
		s.Real[n-1].Late = true
	}
	for i, at := range []**Run{&s.Away, &s.Empty, &s.Broken} {
		if l := string(w.neg[i]); l != "." {
			r := made[l]
			*at = &r
		}
	}
	return s
}

// worlds calls visit for all of them.
func worlds(visit func(world)) {
	reals := []string{"", "ooo", "oox", "xox", "xxx", "o-o", "-x-", "xos"}
	for _, a := range "ox-s" {
		reals = append(reals, string(a))
		for _, b := range "ox-t" {
			reals = append(reals, string(a)+string(b))
		}
	}
	both := []bool{false, true}
	for _, claims := range []Claims{nil, {"P1.C1"}, {""}} {
		for _, absence := range both {
			for _, alone := range both {
				for _, doubt := range both {
					for _, away := range both {
						for _, null := range both {
							for _, real := range reals {
								for i := range 27 {
									neg := [3]byte{".ox"[i%3], ".ox"[i/3%3], ".ox"[i/9]}
									visit(world{claims, absence, alone, doubt, real, neg, Waived{Away: away, Null: null}})
								}
							}
						}
					}
				}
			}
		}
	}
}

// passes decides without the package whether a world passes.
func (w world) passes() bool {
	tried := func(i int, waived bool) bool { return w.neg[i] != '.' || waived }
	ok := func(i int) bool { return w.neg[i] == 'o' }
	noted := len(w.claims) == 0 && w.real != "" && strings.Trim(w.real, "o") == "" && !w.doubt
	return noted && tried(0, w.waived.Away) && tried(1, w.waived.Null) && tried(2, w.waived.Null) &&
		!(ok(0) && !w.absence) && !(ok(0) && ok(1) && ok(2))
}

func (w world) fails() bool {
	mixed := strings.Contains(w.real, "o") && strings.Contains(w.real, "x")
	return len(w.claims) > 0 || mixed || w.alone && strings.Contains(w.real, "x")
}

// TestEveryWorld checks these rules in every world: a complete entry fails; different results of
// replays fail; a pass needs complete evidence; everything else is unverified.
func TestEveryWorld(t *testing.T) {
	made := map[string]Run{}
	for _, l := range []string{"o", "x", "-", "s", "t"} {
		made[l] = run(l + "o") // a second test, so that the plan is not empty
	}
	n, wrong := 0, 0
	worlds(func(w world) {
		n++
		f := Decide(w.claims, w.suite(made))
		want := Unverified
		switch {
		case w.fails():
			want = Fail
		case w.passes():
			want = Pass
		}
		bad := ""
		switch {
		case f.Verdict != want:
			bad = "want " + string(want)
		case w.passes() && w.fails():
			bad = "passes and fails"
		case (f.Verdict == Pass) != (len(f.Reasons) == 0):
			bad = "the reasons do not fit"
		case f.Verdict == Pass && !Proven(f.Contracts[0].Finding):
			bad = "a pass without a proof"
		case len(f.Entries()) > 0 && f.Verdict != Fail:
			bad = "entries without a fail"
		case f.Verdict == Fail && len(w.claims) == 0 && len(f.Entries()) == 0:
			bad = "a fail that tells the Builder nothing"
		case w.neg == [3]byte{'x', 'x', 'x'} && f.Contracts[0].Is == Weak:
			bad = "weak without a reason"
		}
		if bad != "" && wrong < 5 {
			wrong++
			t.Errorf("world %+v: got %s, %s\n%s", w, f.Verdict, bad, show(f))
		}
	})
	if n != 3*2*2*2*4*28*27 {
		t.Errorf("worlds: got %d, want %d", n, 3*2*2*2*4*28*27)
	}
}

// Requests for more replays end, and a decided question stays decided.
func TestAgainEnds(t *testing.T) {
	made := map[string]Run{}
	for _, l := range []string{"o", "x", "-", "s", "t"} {
		made[l] = run(l + "o")
	}
	for i := range 5 * 5 * 5 * 5 * 5 {
		letters := ""
		for j, k := 0, i; j < 5; j, k = j+1, k/5 {
			letters += "ox-st"[k%5 : k%5+1]
		}
		for _, claims := range []Claims{nil, {"P1.C1"}} {
			for _, alone := range []bool{false, true} {
				var asked []bool
				for n := range 6 {
					asked = append(asked, Again(claims, world{real: letters[:n], alone: alone, neg: [3]byte{'.', '.', '.'}}.suite(made)))
				}
				if !asked[0] || asked[MaxRuns] || asked[5] {
					t.Fatalf("Again for %s, claims %v, alone %t: got %v, want true for 0 runs, false for %d and 5",
						letters, claims, alone, asked, MaxRuns)
				}
			}
		}
	}
}

// Two contracts, or two suites, do not hide each other, in any order.
func TestTwo(t *testing.T) {
	rank := func(v Verdict) int { return slices.Index([]Verdict{Pass, Unverified, Fail}, v) }
	for _, a := range "ox-st" {
		for _, b := range "ox-st" {
			for _, claims := range []Claims{nil, {"P1.C1"}, {"P1.C2"}} {
				alone := [2]Suite{suite(string(a) + "o"), suite("o" + string(b))}
				worst := max(rank(Decide(claims, alone[0]).Verdict), rank(Decide(claims, alone[1]).Verdict))
				together := Decide(claims, suite(string(a)+string(b)))
				alone[1].Name = "other"
				split := Decide(claims, alone[0], alone[1])
				name := fmt.Sprintf("%c and %c, claims %v", a, b, claims)
				if rank(together.Verdict) != worst || rank(split.Verdict) != worst {
					t.Errorf("rank of %s: got %s together, %s in two suites, want %d for both",
						name, together.Verdict, split.Verdict, worst)
				}
			}
		}
	}
}
