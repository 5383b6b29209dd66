package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"abl/internal/tap"
	"abl/internal/witness"
)

// TestStrength checks that only alterations of its own responses make a test strong.
func TestStrength(t *testing.T) {
	get := func(altered bool) Run {
		x := witness.Exchange{Method: "GET", Target: "/P1.C1", Status: 200, Altered: altered}
		return Run{Watched: true, Record: []witness.Exchange{x}}
	}
	long := get(true) // in addition to one that could not be altered
	long.Record = append(long.Record, get(false).Record...)
	ended := get(true)
	ended.Gone = "the witness ended"
	type tried func(*Suite)
	made := func(r Run, letters string, ids ...string) tried {
		r.TAP = run(letters).TAP
		a := Alteration{Of: map[string]witness.Alteration{}}
		for _, id := range ids {
			a.Of[id] = witness.OfStatus
		}
		return func(s *Suite) { s.RanAltered(a, r) }
	}
	for _, c := range []struct {
		name    string
		altered []tried
		off     bool
		next    int // expected number of further replays
		want    string
	}{
		{"nothing was tried", nil, false, 1, ""},
		{"nothing shall be", nil, true, 1, "not checked, because verify.strength_time is 0"},
		{"it noticed beside another", []tried{made(get(true), "x", "P1.C1", "P1.C2")}, false, 1, "shown for 0 of 1 contract, 1 not reached"},
		{"it noticed another", []tried{made(get(true), "x", "P1.C1", "P1.C2"), made(get(false), "x", "P1.C2")}, false, 1, "shown for 0 of 1 contract, 1 not reached"},
		{"it noticed another, and then its own alone", []tried{made(get(false), "x", "P1.C2"), made(get(true), "x", "P1.C1")}, false, 0, "shown for 1 of 1 contract"},
		{"it noticed alone", []tried{made(get(true), "x", "P1.C1")}, false, 0, "shown for 1 of 1 contract"},
		{"no answer was altered beside another", []tried{made(get(false), "x", "P1.C1", "P1.C2")}, false, 1, "shown for 0 of 1 contract, 1 not reached"},
		{"it gave up", []tried{made(get(true), "-", "P1.C1")}, false, 0, "shown for 1 of 1 contract"},
		{"the witness had ended", []tried{made(ended, "x", "P1.C1")}, false, 0, "shown for 0 of 1 contract, 1 with nothing to alter"},
		{"it noticed nothing", []tried{made(get(true), "o", "P1.C1")}, false, 0, "shown for 0 of 1 contract, 1 weak"},
		{"its own answer may have been too long", []tried{made(long, "o", "P1.C1", "P1.C2")}, false, 1, "shown for 0 of 1 contract, 1 not reached"},
		{"there was nothing to notice", []tried{made(get(false), "x", "P1.C1")}, false, 0, "shown for 0 of 1 contract, 1 with nothing to alter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := suite("o")
			claim, _ := witness.ReadClaim("", "GET /P1.C1", "200")
			s.Contracts[0].Claim = &claim
			real := get(false)
			real.TAP = s.Real[0].TAP
			s.Real, s.Waived.Strength = []Run{real}, c.off
			for _, add := range c.altered {
				add(&s)
			}
			got, next := Decide(nil, s).Strength, len(s.Alterations())
			if got != c.want || next != c.next {
				t.Errorf("got %q and %d replays more, want %q and %d", got, next, c.want, c.next)
			}
		})
	}
}

// played returns the result of a suite in a replay. Each test checks the responses of some contracts
// and detects their alteration.
func (s *Suite) played(a Alteration, looksAt map[string]string) Run {
	r := Run{Watched: true}
	var lines []string
	for i, c := range s.Contracts {
		what := a.Of[c.ID]
		x := witness.Exchange{Method: "GET", Target: "/" + c.ID, Status: 200, Got: bodyOf("x"), Altered: what != ""}
		r.Record = append(r.Record, x)
		for id, of := range looksAt { // other tests request what they look at
			asks := func(one string) bool { return strings.HasPrefix(one+":", c.ID+":") }
			if id != c.ID && slices.ContainsFunc(strings.Fields(of), asks) {
				r.Record = append(r.Record, x)
			}
		}
		is := "ok"
		for _, of := range strings.Fields(looksAt[c.ID]) {
			if id, only, _ := strings.Cut(of, ":"); a.Of[id] != "" && (only == "" || string(a.Of[id]) == only) {
				is = "not ok"
			}
		}
		lines = append(lines, fmt.Sprintf("%s %d - %s", is, i+1, c.ID))
	}
	r.TAP = tap.Parse([]byte(fmt.Sprintf("1..%d\n%s\n", len(lines), strings.Join(lines, "\n"))), true)
	return r
}

// TestAlterationsOfManyContracts checks that few replays show for many contracts, in any order, which
// test detects its own altered responses.
func TestAlterationsOfManyContracts(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		looksAt func(i int) string // contracts whose responses the i-th test checks, from 1
		weak    []int
		most    int // maximum of replays
	}{
		{"one", 1, nil, nil, 2},
		{"two", 2, nil, nil, 4},
		{"five", 5, nil, nil, 4},
		{"twenty", 20, nil, nil, 6},
		{"sixty", 60, nil, nil, 8},
		{"sixty, the last of which compare nothing", 60, func(i int) string {
			if i > 55 {
				return ""
			}
			return fmt.Sprintf("P1.C%d", i)
		}, []int{56, 57, 58, 59, 60}, 12},
		{"one that compares the status alone", 20, func(i int) string {
			if i == 7 {
				return "P1.C7:status"
			}
			return fmt.Sprintf("P1.C%d", i)
		}, []int{7}, 10},
		{"one that goes by another's answer", 20, func(i int) string {
			if i == 7 {
				return "P1.C8"
			}
			return fmt.Sprintf("P1.C%d", i)
		}, []int{7}, 12},
		{"one that looks at another's answer, too", 20, func(i int) string {
			if i == 7 {
				return "P1.C7 P1.C8"
			}
			return fmt.Sprintf("P1.C%d", i)
		}, nil, 12},
		// As of a program for a list of tasks: the second contract adds one, which all tests need, and
		// eight need its number from the output. The third lists them, which six tests look at.
		{"a program with commands that tests share", 20, func(i int) string {
			looksAt := fmt.Sprintf("P1.C%d P1.C2:ignored", i)
			if i%5 < 2 {
				looksAt += " P1.C2:named"
			}
			if i%3 == 0 {
				looksAt += " P1.C3"
			}
			return looksAt
		}, nil, 12},
		// As of a service whose tests need what other tests check.
		{"a service with responses that many tests use", 9, func(i int) string {
			return fmt.Sprintf("P1.C%d P1.C%d:ignored P1.C%d:ignored P1.C2:named", i, i%9+1, (i+1)%9+1)
		}, nil, 13},
		{"all go by the first", 20, func(int) string { return "P1.C1" }, []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			for try := range 8 { // orders of the contracts
				s, looksAt := Suite{}, map[string]string{}
				for i := 1; i <= c.n; i++ {
					id := fmt.Sprintf("P1.C%d", i)
					claim, _ := witness.ReadClaim("", "GET /"+id, `200 with the text "x"`)
					s.Contracts = append(s.Contracts, Contract{ID: id, Claim: &claim})
					if looksAt[id] = id; c.looksAt != nil {
						looksAt[id] = c.looksAt(i)
					}
				}
				s.Ran(s.played(Alteration{}, looksAt))
				atOnce := 1 + try%2*3 // 1 or 4 replays
				for all := s.Alterations(); len(all) > 0; all = s.Alterations() {
					for _, a := range all[:min(len(all), atOnce)] {
						s.RanAltered(a, s.played(a, looksAt))
					}
				}
				var weak []int
				for i, c := range s.Contracts {
					if s.unnoticed(c) != "" {
						weak = append(weak, i+1)
					}
				}
				if !slices.Equal(weak, c.weak) || len(s.Altered) > c.most {
					t.Fatalf("weak contracts: got %v after %d replays, want %v after at most %d",
						weak, len(s.Altered), c.weak, c.most)
				}
				if got, want := s.strength(), fmt.Sprintf("shown for %d of ", c.n-len(weak)); !strings.HasPrefix(got, want) {
					t.Fatalf("strength: got %s, want %s", got, want)
				}
			}
		})
	}
}

// Responses that many tests use are altered in a separate replay, because all tests would fail.
func TestContractsThatOthersNeed(t *testing.T) {
	s := Suite{}
	for i := 1; i <= 8; i++ {
		id := fmt.Sprintf("P1.C%d", i)
		claim, _ := witness.ReadClaim("", "GET /"+id, "200")
		s.Contracts = append(s.Contracts, Contract{ID: id, Claim: &claim})
	}
	r := s.played(Alteration{}, nil)
	r.Record = append(r.Record, r.Record[0], r.Record[0])
	s.Ran(r)
	for i, a := range s.Alterations() {
		if a.Of["P1.C1"] != "" || len(a.Of) == 0 {
			t.Errorf("contracts that replay %d alters: got %v, want others than P1.C1", i+1, a.Of)
		}
	}
}
