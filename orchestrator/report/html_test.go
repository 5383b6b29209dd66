package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/ledger"
	"abl/internal/usage"
	"abl/internal/witness"
	"abl/roles/agent"
)

// rendered returns the page of p.
func rendered(t testing.TB, p Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// figures returns the tokens of a row; a negative number means unknown.
func figures(input, cached, candidates, thoughts int64) usage.Count {
	count := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	c := usage.Count{Input: count(input), Cached: count(cached), Candidates: count(candidates), Thoughts: count(thoughts)}
	if input >= 0 {
		c.Total = count(input + candidates + thoughts)
	}
	return c
}

// pageWith returns a phase of several iterations, of which the last passes, with text in every field
// that an agent can set.
func pageWith(text string, iterations int) Page {
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := Page{Run: Run{Phase: 2, Files: 3, Unpublished: true}, Src: "src", Abl: "1.0", Seen: map[int]Exchanges{}}
	all := ledger.Totals{}
	for step := 1; step <= iterations; step++ {
		good, bad := contract(1, "P1.C1", "GET /a → 200 "+text, audit.Pass, audit.ByReplay, "verified"), contract(2, "P2.C1", "POST /links → 201 "+text, audit.Pass, audit.ByReplay, "verified")
		good.Runs, good.Witness, bad.Runs = []string{"ok"}, "GET /a"+text+" → 200", []string{"ok"}
		r := sample(audit.Pass, "passed", good, bad)
		if step < iterations {
			c := &r.Contracts[1]
			c.Result, c.Is, c.Runs, c.Input, c.Observed, c.Why = audit.Fail, "failed", []string{"not ok"}, fmt.Sprint(text, " in ", step), text, text
			r.Verdict, r.Status, r.Entries = audit.Fail, "refuted", []failedspecs.Entry{{Spec: text, Input: text, Observed: text}}
		}
		r.Step, r.Iteration, r.Strength, r.Notes, r.Decided = step, step, text, []string{text}, begun.Add(time.Duration(step)*10*time.Minute)
		request, answer := witness.Exchange{Method: "GET", Target: "/a" + text, Status: 200, Header: map[string][]string{"X": {text}},
			Sent: witness.Body{Bytes: int64(len(text)), Begins: []byte(text)}, Got: witness.Body{Bytes: int64(len(text)) + 9, Begins: []byte(text)}}.Texts()
		p.Seen[step] = Exchanges{good.Witness: {request, answer}}
		for i, role := range []string{"builder", "verifier"} {
			c := &r.Calls[i]
			c.Key, c.Role, c.Class, c.Attempt, c.Model = fmt.Sprintf("p2-%s-%d.1", role, step), role, "done", 1, text
			c.Started = r.Decided.Add(time.Duration(4*i-9) * time.Minute)
			c.Ended = c.Started.Add(time.Duration(2+i) * time.Minute)
			row := ledger.Row{Phase: "2", Step: strconv.Itoa(step), Role: role, Model: text, CallID: c.Key, CostUSD: "0.0125", Source: ledger.Gateway, Count: figures(12_000, 9_000, 800, 200)}
			all.Add(row)
			used := ledger.Totals{}
			used.Add(row)
			p.Turns = append(p.Turns, Turn{Call: *c, Step: step, Used: used.Account().All, Here: true, Said: []agent.Message{
				{Kind: agent.Said, Text: text}, {Kind: agent.Called, Text: "write " + text, Detail: text}, {Kind: agent.Returned, Detail: text}, {Kind: agent.Called, Text: text}}})
		}
		p.Changes = append(p.Changes, Change{Step: step, From: strings.Repeat("a", 40), To: strings.Repeat("b", 40), Files: []FileChange{
			{Path: text, Diff: "@@ -1,2 +1,2 @@\n same\n-" + text + "\n+" + text + " more\n"}, {Path: "logo.png", Note: "it is no text"}}})
		p.Before = append(p.Before, r)
	}
	p.Record, p.Before = &p.Before[iterations-1], p.Before[:iterations-1]
	p.Advice, p.Spec, p.Setup = []string{text}, text, [][2]string{{"app.command", text}}
	p.Tests = []Change{{Step: iterations, From: strings.Repeat("c", 40), To: strings.Repeat("d", 40), Files: []FileChange{
		{Path: "run.sh", Diff: "@@ -1 +1 @@\n-" + text + "\n+" + text + " more\n"}}}}
	p.Spent = all.Account()
	return p
}

// stuck returns a phase that is stuck in its second round.
func stuck() Page {
	p := pageWith("x", 4)
	p.Before[2].Round, p.Before[2].Iteration = 2, 1
	r := p.Record
	r.Round, r.Iteration, r.Verdict, r.Status, r.Entries, r.Strength = 2, 2, audit.Fail, "stuck", p.Before[0].Entries, "shown for 1 of 1 contract"
	r.Contracts[1] = p.Before[0].Contracts[1]
	r.Contracts[1].Input, r.Contracts[1].Observed = "POST /links {}", "500"
	p.Advice = []string{"P2.C1 (phase2.md:9): write the exact request"}
	p.Setup = [][2]string{{"app.command", "npm start"}, {"budget", "at most 5 USD a phase"}}
	return p
}

// The page of a stuck phase begins with the failures, the possible changes and the number of rounds.
func TestPageOfAStuckPhase(t *testing.T) {
	page := string(rendered(t, stuck()))
	for _, want := range []string{
		"Stuck: 1 of 2 contracts fail after 2 iterations of round 2.", "<dt>Iterations</dt><dd>4 in 2 rounds</dd>",
		`<h2 id="h-open">What failed</h2>`, `<p class="label">input</p><pre>POST /links {}</pre><p class="label">observed</p><pre>500</pre>`,
		"<h3>What you could change</h3>\n<ul><li>P2.C1 (phase2.md:9): write the exact request</li></ul>",
		`<th scope="colgroup" class="step round" colspan="2">2</th>`, "Builder: gemini x, Verifier: gemini x.",
		"The tests detect altered responses for 1 of 1 contract (abl can alter the responses of 1 of 2).",
		"Next: change .abl/specs/phase2.md, a setting, a prompt or project.md and run abl phase 2", "<dt>budget</dt><dd>at most 5 USD a phase</dd>",
		`<span class="what">Tests in step-4</span>`, "p2-builder-4.1",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("got a page without %q", want)
		}
	}
}

// trouble returns a phase with faults, waits, unknown figures and missing files.
func trouble() Page {
	p := pageWith("x", 2)
	p.Record.Verdict, p.Record.Status, p.Record.Missing = "unverified", "unverified", []string{"P2.C1 is vacuous"}
	p.Record.Contracts[1].Result, p.Record.Contracts[1].Is, p.Record.Contracts[1].By = audit.Unknown, "vacuous", ""
	p.Record.Contracts[0].Is, p.Record.Contracts[0].Under, p.Record.Contracts[0].Allowed = "weak", []string{"500"}, true
	p.Record.Calls[0].Boundary = &audit.Proof{Container: "b", Checks: 40, Held: 39, Weak: "the engine's networks are not proven"}
	p.Ended, p.Files, p.Changes, p.Unknown = &Ended{75, "the provider is unavailable"}, -1, nil, "The changes are unknown: another abl is at work"
	p.Turns[2].Class, p.Turns[2].Reason, p.Turns[2].Said = "away", "the provider answers 503", nil
	p.Turns[3].Here, p.Turns[3].Said, p.Turns[3].Started, p.Turns[3].Ended = false, nil, p.Turns[3].Started.Add(9*time.Hour), p.Turns[3].Ended.Add(9*time.Hour)
	all := ledger.Totals{Price: func(r ledger.Row) (usage.USD, bool) { return 0, false }}
	all.Add(ledger.Row{Phase: "2", Step: "1", Role: "builder", Model: "m", Count: figures(1000, -1, 100, 0)})
	all.Add(ledger.Row{Phase: "2", Step: "1", Role: "verifier", Model: "m", Count: figures(-1, -1, -1, -1)})
	p.Spent = all.Account()
	return p
}

// TestPage compares the text of a page without its style.
func TestPage(t *testing.T) {
	for name, p := range map[string]Page{"page": pageWith(hostile, 2), "page-trouble": trouble(), "page-stuck": stuck(), "page-empty": {Run: Run{Phase: 3, Title: "Later", Files: -1}, Abl: "1.0"}} {
		t.Run(name, func(t *testing.T) {
			_, got, _ := strings.Cut(string(rendered(t, p)), "</style>")
			path := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; go test ./orchestrator/report -update writes it)\n%s", path, diff)
			}
		})
	}
}

// TestPageIsBounded checks that fifty iterations with ten megabytes of logs, diffs and evidence give a
// page that opens, lists the omitted parts, and has the newest texts.
func TestPageIsBounded(t *testing.T) {
	for name, text := range map[string]string{"plain": strings.Repeat("All of this was said. ", 200), "to be escaped": strings.Repeat("<&\"'+\x1b", 2_000)} {
		t.Run(name, func(t *testing.T) {
			p := large(text)
			page := rendered(t, p)
			const most = 4 << 20
			if len(page) > most {
				t.Errorf("got a page of %d bytes, want at most %d", len(page), most)
			}
			for _, want := range []string{"left out: .abl/logs/calls/", "git -C src diff aaaaaaaaaaaa bbbbbbbbbbbb<", "the end of iteration 50"} {
				if !bytes.Contains(page, []byte(want)) {
					t.Errorf("page of %d bytes: got no %q, want it", len(page), want)
				}
			}
			if got, want := bytes.Contains(page, []byte("fit on this page: abl report 2 --step 1<")), name != "plain"; got != want {
				t.Errorf("evidence is left out: got %v, want %v", got, want)
			}
		})
	}
}

// The page lists the parts that it cannot show.
func TestPageNamesOmittedParts(t *testing.T) {
	p := pageWith("x", 1)
	results := make([]agent.Message, 200_000)
	for i := range results {
		results[i] = agent.Message{Kind: agent.Returned, Text: "y"}
	}
	p.Turns[0].Said, p.Turns[0].Left = append([]agent.Message{{Kind: agent.Called, Text: "run it"}}, results...), 7
	p.Changes[0].Files, p.Changes[0].More = []FileChange{{Path: "x; rm -rf y", Unread: true}}, 3
	page := string(rendered(t, p))
	for _, want := range []string{"earlier messages left out", "over 1 file, at least <", "3 more files not shown", "The rest does not fit on this page: git -C src diff aaaaaaaaaaaa bbbbbbbbbbbb<"} {
		if !strings.Contains(page, want) {
			t.Errorf("page of %d bytes: got no %q, want it", len(page), want)
		}
	}
	if strings.Contains(page, "diff aaaaaaaaaaaa bbbbbbbbbbbb -- x; rm") || strings.Contains(page, "No text to compare") {
		t.Error("page: got a name in a command or unread changes as no text, want neither")
	}
}

// A pass without an iteration is based on a replay, and tables have the page's words "ok so far".
func TestReplayTextsAndOKSoFar(t *testing.T) {
	r := sample("pass", "passed", contract(1, "P1.C1", "a → b", "pass", "replay", "verified"))
	r.Iteration = 0
	if got, want := (Page{Run: Run{Phase: 1, Record: &r}}).Verdict().Value(), "in a replay, without an agent"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	f := sample("fail", "refuted", contract(1, "P1.C1", "a → b", "unknown", "", "untried"), contract(1, "P1.C2", "c → d", "fail", "replay", "failed"))
	if got := Markdown(Run{Phase: 1, Record: &f}); !strings.Contains(got, "| ok so far |") {
		t.Errorf("Markdown: got\n%s\nwant ok so far in it", got)
	}
}

// large returns a phase of fifty iterations with ten megabytes of text.
func large(text string) Page {
	p := pageWith("x", 50)
	for i := range p.Turns {
		for range 10 << 20 / 100 / len(text) {
			p.Turns[i].Said = append(p.Turns[i].Said, agent.Message{Kind: agent.Said, Text: text}, agent.Message{Kind: agent.Called, Text: "run it", Detail: text})
		}
		p.Turns[i].Said = append(p.Turns[i].Said, agent.Message{Kind: agent.Said, Text: fmt.Sprintf("the end of iteration %d", p.Turns[i].Step)})
	}
	for i := range p.Changes {
		p.Changes[i].Files[0].Diff = "@@ -0,0 +1,9 @@\n" + strings.Repeat("+"+text[:40]+"\n", 5000)
	}
	for i := range p.Before {
		c := &p.Before[i].Contracts[1]
		c.Input, c.Observed = text, text
	}
	return p
}

var values = regexp.MustCompile(`"[^"]*"`)

// tagsOf returns the tags of a page with the names of their attributes.
func tagsOf(page []byte) string {
	_, body, _ := strings.Cut(string(page), "</style>")
	var all []string
	for _, tag := range regexp.MustCompile(`<[^>]*>`).FindAllString(body, -1) {
		all = append(all, values.ReplaceAllString(tag, `""`))
	}
	return strings.Join(all, "\n")
}
