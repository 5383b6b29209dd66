package evidence

import (
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/tap"
	"abl/internal/witness"
)

// An app that is not an HTTP server is checked without claims: only the results of the replays count,
// and whether the tests used the app.
func TestKinds(t *testing.T) {
	ok, no := "ok 1 - P1.C1\n1..1\n", "not ok 1 - P1.C1\n1..1\n"
	ran := witness.Exchange{Method: "POST", Target: "/app", Status: 200, Got: bodyOf(`{"exit":0,"stdout":"aGkK"}`)}
	printed := witness.Exchange{Method: "POST", Target: "/app", Status: 200,
		Got: bodyOf(`{"exit":0,"stdout":"b2sgMSAtIFAxLkMxCg=="}`)} // ok 1 - P1.C1
	line := witness.Exchange{Sent: bodyOf("a"), Got: bodyOf("A")}
	for _, c := range []struct {
		name, kind          string
		seen                witness.Exchange
		away, empty, broken string
		is, why             string
		pass                bool
	}{
		{"a program", helper.KindCommand, ran, no, no, no, Verified, "", true},
		{"a program that may be silent", helper.KindCommand, ran, no, ok, no, Weak, "a program that does nothing and ends with 0", true},
		{"a program that may fail", helper.KindCommand, ran, no, no, ok, Weak, "a program that fails with 1", true},
		{"a program that may do anything", helper.KindCommand, ran, no, ok, ok, Weak, "does nothing and ends with 0 and under a program that fails with 1", false},
		{"a program that need not be there", helper.KindCommand, ran, ok, no, no, Vacuous, "does it run abl-cmd app?", false},
		{"a program that is not run", helper.KindCommand, witness.Exchange{}, no, no, no, Vacuous, "the tests never ran the program", false},
		{"a program that prints the test line", helper.KindCommand, printed, no, no, no, Vacuous, "output of the program", false},
		{"a server", helper.KindTCP, line, no, no, no, Verified, "", true},
		{"a server that may be silent", helper.KindTCP, line, no, ok, no, Weak, "accepts connections and sends nothing", false},
		{"a server that is not asked", helper.KindTCP, witness.Exchange{}, no, no, no, Vacuous, "no request", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(text string) *Run {
				return &Run{TAP: tap.Parse([]byte(text), true), Exit: strings.Count(text, "not")}
			}
			claim, _ := witness.ReadClaim("", "GET /a", "200")
			s := Suite{Kind: c.kind, Contracts: []Contract{{ID: "P1.C1", Says: "a → b", Claim: &claim}}, Away: run(c.away), Empty: run(c.empty), Broken: run(c.broken)}
			r := run(ok)
			r.Watched, r.Record = true, []witness.Exchange{c.seen}
			s.Ran(*r)
			f := Decide(nil, s)
			st := f.Contracts[0]
			if st.Is != c.is || !strings.Contains(st.Why, c.why) || !st.Unread || (f.Verdict == Pass) != c.pass {
				t.Errorf("contract: got %+v, verdict %s, want %s, %q, unread, a pass: %t",
					st, f.Verdict, c.is, c.why, c.pass)
			}
		})
	}
}

// A test of a program is strong if it detects another exit code and other output, if the contract
// names them, in runs with the contract's words.
func TestAlteredRuns(t *testing.T) {
	const words, printed = `"d29yZHM="`, `"exit":0,"stdout":"Mwo="}` // words, 3
	for _, c := range []struct {
		name, contract, args string
		notices              string // the alterations that its test detects
		is, why, strength    string
	}{
		{"honest", "`count words` → prints 3, exit code 0", words, "status named", Verified, "", "shown for 1 of 1 contract"},
		{"the exit code alone", "`count words` → prints 3, exit code 0", words, "status", Weak, "the output and files of its run with words change", "shown for 0 of 1 contract, 1 weak"},
		{"the output alone", "`count words` → prints 3, exit code 0", words, "named", Weak, "the exit code of its run with words is 1 instead of 0", "shown for 0 of 1 contract, 1 weak"},
		{"no exit code is named", "`count words` → prints 3", words, "named", Verified, "", "shown for 1 of 1 contract"},
		{"its words are never given", "`count lines` → prints 3", "", "", NotWitnessed, "the tests never ran the program in this way", "shown for 0 of 1 contract, 1 with nothing to alter"},
		{"it ended otherwise", "`count words` → prints 3, exit code 1", words, "", NotWitnessed, "exit code 0", "shown for 0 of 1 contract, 1 with nothing to alter"},
		{"nothing that can be altered", "`count words` → a note is there", words, "", Verified, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(ok bool) Run {
				text := map[bool]string{true: "ok 1 - P1.C1\n1..1\n", false: "not ok 1 - P1.C1\n1..1\n"}[ok]
				return Run{TAP: tap.Parse([]byte(text), true), Exit: strings.Count(text, "not"), Watched: true, Record: []witness.Exchange{
					{Method: "POST", Target: witness.RunTarget, Status: 200, Got: bodyOf(`{"args":[` + c.args + `],` + printed)}}}
			}
			no := run(false)
			action, result, _ := strings.Cut(c.contract, " → ")
			contract := Contract{ID: "P1.C1", Says: c.contract}
			if claim, ok := witness.ReadRun(action, result); ok {
				contract.Run = &claim
			}
			s := Suite{Kind: helper.KindCommand, Contracts: []Contract{contract}, Away: &no, Empty: &no, Broken: &no}
			s.Ran(run(true))
			for all := s.Alterations(); len(all) > 0; all = s.Alterations() {
				for _, a := range all {
					r := run(!strings.Contains(c.notices, string(a.Of["P1.C1"])))
					for _, one := range s.Altering(a).Answers {
						r.Record[0].Altered = r.Record[0].Altered || one.Claim.Fits(r.Record[0])
					}
					s.RanAltered(a, r)
				}
			}
			f, seen := Decide(nil, s), ""
			if contract.Run != nil && c.args == words && strings.Contains(c.contract, "`count words`") && !strings.Contains(c.contract, "code 1") {
				seen = "run with words → exit code 0"
			}
			if st := f.Contracts[0]; st.Witness != seen {
				t.Errorf("witnessed: got %q, want %q", st.Witness, seen)
			}
			if st := f.Contracts[0]; st.Is != c.is || !strings.Contains(st.Why, c.why) || f.Strength != c.strength || (f.Verdict == Pass) != (c.is == Verified) {
				t.Errorf("contract: got %+v, verdict %s, strength %q, want %s, %q, strength %q",
					st, f.Verdict, f.Strength, c.is, c.why, c.strength)
			}
		})
	}
}
