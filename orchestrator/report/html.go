package report

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"abl/internal/audit"
	"abl/internal/ledger"
	"abl/internal/redact"
	"abl/internal/wording"
	"abl/roles/agent"
)

// Exchanges has the request and the response of recorded exchanges, by Finding.Witness.
type Exchanges = map[string][2]string

// Page is the content of the page of a phase: its records, and other files of the phase. Its texts
// contain no secrets, and otherwise are as agents wrote them.
type Page struct {
	Run
	Spent   ledger.Account    // of the phase
	Turns   []Turn            // oldest first
	Changes []Change          // oldest first
	Tests   []Change          // of the Verifier's tests, oldest first
	Unknown string            // why the changes are unknown, or ""
	Seen    map[int]Exchanges // by step
	Advice  []string          // what the user could change, for a phase that failed
	Setup   [][2]string       // current settings of the project, by name
	Spec    string            // the current text of the phase's spec
	Src     string            // the folder of the source in the project
	Abl     string            // the version of abl
}

// Turn is one call of an agent.
type Turn struct {
	audit.Call
	Step int
	Used ledger.Sum
	Here bool // its output is on this machine
	Left int  // number of earlier messages that are left out
	Said []agent.Message
}

// Change is the change of the source in one iteration.
type Change struct {
	Step     int
	From, To string // commits
	Files    []FileChange
	More     int // number of files that are left out
}

// FileChange is a file that changed.
type FileChange struct {
	Path, Note string
	Diff       string // unified, without file names; "" for the reason in Note
	Unread     bool   // Diff is left out
}

// Limits of a page, in bytes of HTML.
const (
	maxTalk     = 1 << 20
	maxDiffs    = 1 << 20
	maxEvidence = 1 << 19
	maxOneDiff  = 24 << 10
	maxBody     = 2 << 10 // of a recorded request or response
	maxColumns  = 60      // iterations in the matrix
)

// allowance is the number of bytes that remain for a part of the page.
type allowance int

// fit removes control characters from a text, cuts it at most and subtracts its size. It returns
// false if the text does not fit.
func (a *allowance) fit(text string, most int) (string, bool) {
	const markup = 64 // bytes around a text
	switch {
	case text == "":
		return "", true
	case int(*a) <= 0:
		return "", false
	}
	text = wording.Short(redact.String(strings.ReplaceAll(wording.Short(text, 2*most), "\r\n", "\n")), most)
	size := markup + len(html.EscapeString(text)) + 4*strings.Count(text, "+") // which html/template spells &#43;
	if size > int(*a) {
		return "", false
	}
	*a -= allowance(size)
	return text, true
}

//go:embed page/page.html page/page.css
var pageFiles embed.FS

// pageTemplate parses the template when the first page is made.
var pageTemplate = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page.html").Funcs(template.FuncMap{
		"strength": strengthOf, "class": func(s string) string { return cmp.Or(marks[s].class, s) },
		"head": pageHead, "line": line, "text": func(s string) string { return block(s, "") }, "when": when, "span": span,
		"figure": figure, "number": func(n int) string { return wording.Thousands(int64(n)) }, "things": wording.Count,
		"short": func(s string) string { return s[:min(len(s), 12)] }, "paragraphs": paragraphs,
		"counted": counted, "boundaries": boundaries, "others": otherEntries, "facts": facts,
		"words": func(s string) string { return marks[s].words }, "sign": func(s string) string { return marks[s].sign },
	}).ParseFS(pageFiles, "page/page.html")
})

// marks are the signs and words for results, because colour must not be the only difference.
var marks = map[string]struct{ sign, words, class string }{
	audit.Pass:    {"✓", "pass", ""},
	"weak":        {"≈", "weak pass", ""},
	"not read":    {"≈", "not read", "weak"},
	audit.Fail:    {"✕", "fail", ""},
	okSoFar:       {"–", okSoFar, "untried"},
	audit.Unknown: {"?", "unverified", ""},
	"unverified":  {"?", "unverified", ""},
}

// pageHead returns the style, and a policy that forbids loading and scripts.
func pageHead() (template.HTML, error) {
	css, err := pageFiles.ReadFile("page/page.css")
	sum := sha256.Sum256(css)
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
	return template.HTML(`<meta http-equiv="Content-Security-Policy" content="` + policy + "\">\n<style>" + string(css) +
		"</style>"), err
}

// HTML writes the page of a phase: one file that loads nothing and runs no script.
func HTML(w io.Writer, p Page) error {
	t, err := pageTemplate()
	if err == nil {
		err = t.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("cannot create the page: %w", err)
	}
	return nil
}

// Heading returns the title of the page.
func (p Page) Heading() string { return p.heading(line) }

// Figures returns the most important figures.
func (p Page) Figures() []fact {
	holds, tokens, cost, files := "none judged", audit.Unknown, audit.Unknown, audit.Unknown
	if r := p.Record; r != nil {
		n := countMarks(*r)
		holds = fmt.Sprintf("%d of %d hold", n[audit.Pass], len(r.Contracts))
		if n[okSoFar] > 0 {
			holds = fmt.Sprintf("%d of %d are ok so far", n[audit.Pass]+n[okSoFar], len(r.Contracts))
		}
	}
	if all := p.Spent.All; all.Rows > 0 {
		tokens, cost = figure(all.Total), figure(all.Cost)
	}
	if p.Files >= 0 {
		files = strconv.Itoa(p.Files)
	}
	judged := strconv.Itoa(len(p.Judged()))
	if rounds := p.Matrix().Rounds; len(rounds) > 1 {
		judged += fmt.Sprintf(" in %d rounds", len(rounds))
	}
	took, calls, unknown := p.worked()
	return []fact{
		{"Contracts", holds},
		{"Iterations", judged},
		{"Calls and replays", partly(span(took), took == 0, unknown || calls == 0)},
		{"Tokens", tokens},
		{"USD", cost},
		{"Source files changed", files},
	}
}

// Hashes returns the commits, specs and images of the last record, and the version of abl.
func (p Page) Hashes() (all []fact) {
	if r := p.Record; r != nil {
		all = slices.DeleteFunc(facts(*r), func(f fact) bool {
			return !strings.HasPrefix(f.name, "commit.") && !strings.HasPrefix(f.name, "spec.")
		})
		all = append(all, fact{"audit record", fmt.Sprintf(".abl/reports/phase%d/step-%d.json, format %d", r.Phase, r.Step,
			r.Version)})
		for _, b := range proofs(*r) {
			if image := (fact{"image", b.Image}); b.Image != "" && !slices.Contains(all, image) {
				all = append(all, image)
			}
		}
	}
	return append(all, fact{"this page", "by abl " + p.Abl})
}

// Proven reports whether every container of every iteration was checked, without a failed check.
func (p Page) Proven() bool {
	none := true
	for _, r := range p.Judged() {
		for _, b := range proofs(r) {
			none = false
			if b.Checks == 0 || b.Held < b.Checks || b.Unheard || b.Weak+b.Failed != "" {
				return false
			}
		}
	}
	return !none
}

// Verdict returns the phase's verdict as a word and as a sentence.
func (p Page) Verdict() fact {
	if p.Record == nil {
		return fact{audit.Unknown, "No iteration was judged yet."}
	}
	r := *p.Record
	n, all, pace := countMarks(r), wording.Count(len(r.Contracts), "contract"), " after "+wording.Count(r.Iteration,
		"iteration")
	if r.Round > 1 {
		pace += fmt.Sprintf(" of round %d", r.Round)
	}
	if r.Iteration == 0 {
		pace = " in a replay, without an agent"
	}
	switch {
	case r.Verdict == audit.Pass && r.Evidence == "off":
		return fact{audit.Pass, "Passed by the Verifier’s report only" + pace + "."}
	case r.Verdict == audit.Pass:
		return fact{audit.Pass, "Passed: all " + all + " hold" + pace + "."}
	case r.Verdict != audit.Fail:
		open := len(r.Contracts) - n[audit.Pass] - n[audit.Fail]
		return fact{audit.Unknown, fmt.Sprintf("Unverified: %d of %s not verified%s.", open, all, pace)}
	}
	word := map[bool]string{true: "Stuck", false: "Refuted"}[r.Status == "stuck"]
	if n[audit.Fail] == 0 {
		return fact{audit.Fail, fmt.Sprintf("%s%s: %s that no contract names.", word, pace,
			wording.Count(len(otherEntries(r)), "failure"))}
	}
	return fact{audit.Fail, fmt.Sprintf("%s: %d of %s fail%s.", word, n[audit.Fail], all, pace)}
}

// Name and Value return the texts of a fact for the template.
func (f fact) Name() string  { return line(f.name) }
func (f fact) Value() string { return line(f.value) }

// figure returns a number of the ledger as text. Unknown parts make it a lower bound.
func figure(n fmt.Stringer) string {
	known, partly := strings.CutSuffix(n.String(), "+?")
	if known == "?" || known == "-" {
		return audit.Unknown
	}
	if whole, err := strconv.ParseInt(known, 10, 64); err == nil {
		known = wording.Thousands(whole)
	}
	if partly {
		return "≥ " + known
	}
	return known
}

// span returns a duration, rounded.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// paragraphs splits a text at empty lines.
func paragraphs(text string) []string {
	all := strings.Split(text, "\n\n")
	return slices.DeleteFunc(all, func(part string) bool { return strings.TrimSpace(part) == "" })
}
