package evidence

import (
	"strconv"
	"strings"
	"testing"

	"abl/internal/tap"
	"abl/internal/witness"
)

// A contract about two requests is witnessed only if the tests sent both in their order, with the same
// path, and both responses fit.
func TestOrderOfRequests(t *testing.T) {
	const after, then = "GET /a/N after DELETE /a/N → 404", "DELETE /a/N → 204, then GET /a/N → 404"
	for _, c := range []struct{ name, contract, record, is string }{
		{"in order", after, "DELETE /a/1 204, GET /a/1 404", Verified},
		{"with others between", after, "DELETE /a/1 204, GET /b 200, GET /a/1 404", Verified},
		{"another id", after, "DELETE /a/1 204, GET /a/9 404", NotWitnessed},
		{"the other way round", after, "GET /a/1 404, DELETE /a/1 204", NotWitnessed},
		{"never deleted", after, "GET /a/1 404", NotWitnessed},
		{"both", then, "DELETE /a/1 204, GET /a/1 404", Verified},
		{"the first alone", then, "DELETE /a/1 204", NotWitnessed},
		{"the second of another", then, "DELETE /a/1 204, GET /a/2 404", NotWitnessed},
		{"the second differs", then, "DELETE /a/1 204, GET /a/1 200", NotWitnessed},
	} {
		t.Run(c.name, func(t *testing.T) {
			action, result, _ := strings.Cut(c.contract, " → ")
			claim, ok := witness.ReadClaim("", action, result)
			if !ok {
				t.Fatalf("claim of %q: got none, want one", c.contract)
			}
			var record []witness.Exchange
			for text := range strings.SplitSeq(c.record, ", ") {
				words := strings.Fields(text)
				status, _ := strconv.Atoi(words[2])
				record = append(record, witness.Exchange{Method: words[0], Target: words[1], Status: status})
			}
			no := Run{TAP: tap.Parse([]byte("not ok 1 - P1.C1\n1..1\n"), true), Exit: 1}
			s := Suite{Contracts: []Contract{{ID: "P1.C1", Says: c.contract, Claim: &claim}}, Away: &no, Empty: &no, Broken: &no}
			s.Ran(Run{TAP: tap.Parse([]byte("ok 1 - P1.C1\n1..1\n"), true), Watched: true, Record: record})
			if st := Decide(nil, s).Contracts[0]; st.Is != c.is {
				t.Errorf("%s: got %s: %s, want %s", c.record, st.Is, st.Why, c.is)
			}
		})
	}
}

// A test that is ok without the app and with an empty response counts if it detects all altered
// responses, and not if it detects only one type of them.
func TestDetectsInSpiteOfNullApps(t *testing.T) {
	for notices, want := range map[string]string{"status named": Verified, "status": Vacuous, "": Vacuous} {
		t.Run(notices, func(t *testing.T) {
			claim, _ := witness.ReadClaim("", "GET /a", `200 {"a": 1}`)
			run := func(ok bool) Run {
				text := map[bool]string{true: "ok 1 - P1.C1\n1..1\n", false: "not ok 1 - P1.C1\n1..1\n"}[ok]
				return Run{TAP: tap.Parse([]byte(text), true), Exit: strings.Count(text, "not"), Watched: true, Record: []witness.Exchange{
					{Method: "GET", Target: "/a", Status: 200, Got: bodyOf(`{"a": 1}`)}}}
			}
			ok, no := run(true), run(false)
			s := Suite{Contracts: []Contract{{ID: "P1.C1", Says: "a", Claim: &claim}}, Away: &ok, Empty: &ok, Broken: &no}
			s.Ran(run(true))
			if st := Decide(nil, s).Contracts[0]; st.Is != Vacuous {
				t.Errorf("without alterations: got %s, want %s", st.Is, Vacuous)
			}
			for all := s.Alterations(); len(all) > 0; all = s.Alterations() {
				for _, a := range all {
					r := run(!strings.Contains(notices, string(a.Of["P1.C1"])))
					r.Record[0].Altered = true
					s.RanAltered(a, r)
				}
			}
			if st := Decide(nil, s).Contracts[0]; st.Is != want {
				t.Errorf("got %s: %s, want %s", st.Is, st.Why, want)
			}
		})
	}
}
