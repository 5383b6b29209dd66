package orchestrator

import (
	"maps"
	"strings"
	"testing"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
)

// After a fault of the machine the replay is repeated, at most twice. Then its contracts are
// untried.
func TestFaultsDecideNothing(t *testing.T) {
	const fault = "fault: a container was ended from outside"
	no, yes := suite(1, "--"), suite(1, "++")
	never := []string{fault}
	says := func(change map[string][]string) map[string][]string {
		all := map[string][]string{"app": {yes}, "no app": {no}, "empty": {no}, "500": {no}}
		maps.Copy(all, change)
		return all
	}
	refutes := string(failedspecs.Render([]failedspecs.Entry{{Spec: "GET /1/1 → 200", Input: "GET /1/1", Observed: "500"}}))
	for _, c := range []struct {
		name string
		says map[string][]string
		file string
		want string
	}{
		{"the app's replay, once", says(map[string][]string{"app": {fault, yes}}), "", "pass; 500, app, app, empty, no app"},
		{"twice", says(map[string][]string{"app": {fault, fault, yes}}), "", "pass; 500, app, app, app, empty, no app"},
		{"always", says(map[string][]string{"app": never}), "", "unverified: P1.C1 is untried: its tests could not be replayed: a container was ended"},
		{"always, and the Verifier reports a failure", map[string][]string{"app": never}, refutes, "fail: 1 entries"},
		{"each try, once", says(map[string][]string{"no app": {fault, no}, "empty": {fault, no}, "500": {fault, no}}), "",
			"pass; 500, 500, app, empty, empty, no app, no app"},
		{"each try, and the tests assert nothing", says(map[string][]string{"no app": {fault, yes}, "empty": {fault, yes}, "500": {fault, yes}}), "",
			"unverified: P1.C1 is vacuous"},
		{"away, always", says(map[string][]string{"no app": never}), "", "unverified: P1.C1 is untried: its tests were not run with the app away (a container"},
		{"an empty 200, always", says(map[string][]string{"empty": never}), "", "unverified: P1.C1 is untried: its tests were not run under an app that responds to everything with an empty 200"},
		{"all tries, always", says(map[string][]string{"no app": never, "empty": never, "500": never}), "", "unverified: P1.C1 is untried"},
		{"not ok, and the second is ended", says(map[string][]string{"app": {suite(1, "-+"), fault}}), "", "unverified: P1.C1 is untried"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true, failed: c.file}})
			replays := &tests{t: t, says: c.says}
			l, p := w.toJudge(replays)
			l.NoNull = ""
			f, err := w.judged(l, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(f, replays); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A fault in a replay with altered responses proves nothing either: it stays unknown whether the tests
// detect them, so a suite gains nothing by ending its own witness.
func TestFaultsAmidAlteredReplays(t *testing.T) {
	const fault = "fault: a container was ended from outside"
	for _, c := range []struct {
		name    string
		altered []string
		want    string
	}{
		{"once", []string{fault, suite(1, "--")}, "pass"},
		{"always", []string{fault}, "unverified: P1.C1 is untried: its tests were not run with altered responses: a container was ended"},
		{"from the second on", []string{suite(1, "--"), fault}, "unverified: P1.C1 is untried"},
		{"and the tests notice nothing", []string{fault, suite(1, "++")}, "unverified: P1.C1 is weak"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, map[string]play{"p1-verify-1.1": {class: outcome.Done, report: true}})
			replays := watchedTests(t, "--", "12")
			replays.altered, replays.says["altered"] = nil, c.altered
			l, p := w.toJudge(replays)
			l.NoNull = ""
			l.StrengthTime = func(time.Duration) time.Duration { return time.Hour }
			f, err := w.judged(l, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(f, replays); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
