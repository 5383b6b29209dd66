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

// Exchanges are what a witness saw, the request and the response of each, by Finding.Witness.
type Exchanges = map[string][2]string

// Page is what the page of a phase shows: its records, and what is on disk beside them. Its
// texts are without secrets, and otherwise as agents wrote them.
type Page struct {
	Run
	Spent   ledger.Account    // of the phase
	Turns   []Turn            // oldest first
	Changes []Change          // oldest first
	Tests   []Change          // likewise, of the Verifier's tests
	Unknown string            // why it is not known what changed, "" if it is
	Seen    map[int]Exchanges // by step
	Advice  []string          // what the user could change, for a phase that failed
	Setup   [][2]string       // settings of the project now, by name
	Spec    string            // the text of the phase's spec now
	Src     string            // the folder of the source in the project
	Abl     string            // the version that makes the page
}

// Turn is one call of an agent.
type Turn struct {
	audit.Call
	Step int
	Used ledger.Sum
	Here bool // what it printed is on this machine
	Left int  // messages before those of Said, for which there was no room
	Said []agent.Message
}

// Change is what one iteration changed in the source.
type Change struct {
	Step     int
	From, To string // commits
	Files    []FileChange
	More     int // files besides, for which there was no room
}

// FileChange is a file that differs.
type FileChange struct {
	Path, Note string
	Diff       string // unified, without the names; "" where Note says why
	Unread     bool   // there was no room for Diff
}

// Bounds of a page, in bytes as they stand in it.
const (
	maxTalk     = 1 << 20
	maxDiffs    = 1 << 20
	maxEvidence = 1 << 19
	maxOneDiff  = 24 << 10
	maxBody     = 2 << 10 // of what the witness saw
	maxColumns  = 60      // iterations in the matrix
)

// allowance is how many bytes of a part of the page are left.
type allowance int

// keep makes a text harmless and takes it from what is left; false where there is no room.
func (a *allowance) keep(text string, most int) (string, bool) {
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

// pageTemplate is read when the first page is made.
var pageTemplate = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page.html").Funcs(template.FuncMap{
		"next": Next, "strength": strengthOf, "class": func(s string) string { return cmp.Or(marks[s].class, s) },
		"head": pageHead, "line": line, "text": func(s string) string { return block(s, "") }, "when": when, "span": span,
		"figure": figure, "number": func(n int) string { return wording.Thousands(int64(n)) }, "things": wording.Count,
		"short": func(s string) string { return s[:min(len(s), 12)] }, "paragraphs": paragraphs,
		"counted": counted, "boundaries": boundaries, "besides": besides, "facts": facts,
		"words": func(s string) string { return marks[s].words }, "sign": func(s string) string { return marks[s].sign },
	}).ParseFS(pageFiles, "page/page.html")
})

// marks are signs and words of what a contract or an iteration came to: colour alone tells nothing.
var marks = map[string]struct{ sign, words, class string }{
	audit.Pass:    {"✓", "pass", ""},
	"weak":        {"≈", "weak pass", ""},
	"not read":    {"≈", "not read", "weak"},
	audit.Fail:    {"✕", "fail", ""},
	okSoFar:       {"–", okSoFar, "untried"},
	audit.Unknown: {"?", "unverified", ""},
	"unverified":  {"?", "unverified", ""},
}

// pageHead are the policy by which the page may load and run nothing, and its style.
func pageHead() (template.HTML, error) {
	css, err := pageFiles.ReadFile("page/page.css")
	sum := sha256.Sum256(css)
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	return template.HTML(`<meta http-equiv="Content-Security-Policy" content="` + policy + "\">\n<style>" + string(css) + "</style>"), err
}

// HTML writes the page of a phase: one file that loads nothing and runs nothing.
func HTML(w io.Writer, p Page) error {
	t, err := pageTemplate()
	if err == nil {
		err = t.Execute(w, p)
	}
	if err != nil {
		return fmt.Errorf("cannot make the page: %w", err)
	}
	return nil
}

// Heading is the phase in a few words.
func (p Page) Heading() string { return p.heading(line) }

// Figures are what a person asks first.
func (p Page) Figures() []fact {
	holds, tokens, cost, files := "none judged", audit.Unknown, audit.Unknown, audit.Unknown
	if r := p.Record; r != nil {
		n := marked(*r)
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
	took, calls, untold := p.worked()
	return []fact{
		{"Contracts", holds}, {"Iterations", judged}, {"Calls and replays", partly(span(took), took == 0, untold || calls == 0)},
		{"Tokens", tokens}, {"USD", cost}, {"Source files changed", files},
	}
}

// Hashes are those of what was judged last, and the versions of what did it.
func (p Page) Hashes() (all []fact) {
	if r := p.Record; r != nil {
		all = slices.DeleteFunc(facts(*r), func(f fact) bool {
			return !strings.HasPrefix(f.name, "commit.") && !strings.HasPrefix(f.name, "spec.")
		})
		all = append(all, fact{"audit record", fmt.Sprintf(".abl/reports/phase%d/step-%d.json, format %d", r.Phase, r.Step, r.Version)})
		for _, b := range proofs(*r) {
			if image := (fact{"image", b.Image}); b.Image != "" && !slices.Contains(all, image) {
				all = append(all, image)
			}
		}
	}
	return append(all, fact{"this page", "by abl " + p.Abl})
}

// Proven says that every container of every iteration was looked at, and all held.
func (p Page) Proven() bool {
	none := true
	for _, r := range p.Judged() {
		for _, b := range proofs(r) {
			if none = false; b.Checks == 0 || b.Held < b.Checks || b.Unheard || b.Weak+b.Failed != "" {
				return false
			}
		}
	}
	return !none
}

// Verdict is the phase's in a word, and in a sentence.
func (p Page) Verdict() fact {
	if p.Record == nil {
		return fact{audit.Unknown, "No iteration was judged yet."}
	}
	r := *p.Record
	n, all, pace := marked(r), wording.Count(len(r.Contracts), "contract"), " after "+wording.Count(r.Iteration, "iteration")
	if r.Round > 1 {
		pace += fmt.Sprintf(" of round %d", r.Round)
	}
	if r.Iteration == 0 {
		pace = " in a replay, without an agent"
	}
	switch {
	case r.Verdict == audit.Pass && r.Evidence == "off":
		return fact{audit.Pass, "Passed, on the Verifier’s word alone" + pace + "."}
	case r.Verdict == audit.Pass:
		return fact{audit.Pass, "Passed: all " + all + " hold" + pace + "."}
	case r.Verdict != audit.Fail:
		open := len(r.Contracts) - n[audit.Pass] - n[audit.Fail]
		return fact{audit.Unknown, fmt.Sprintf("Unverified: %d of %s not verified%s.", open, all, pace)}
	}
	word := map[bool]string{true: "Stuck", false: "Refuted"}[r.Status == "stuck"]
	if n[audit.Fail] == 0 {
		return fact{audit.Fail, fmt.Sprintf("%s%s: %s that no contract names.", word, pace, wording.Count(len(besides(r)), "failure"))}
	}
	return fact{audit.Fail, fmt.Sprintf("%s: %d of %s fail%s.", word, n[audit.Fail], all, pace)}
}

// Name and Value are what the template reads of a fact.
func (f fact) Name() string  { return line(f.name) }
func (f fact) Value() string { return line(f.value) }

// figure is a number of the ledger, whose question mark stands for what nobody told.
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

// span is a duration as people say it.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// paragraphs are a text's, with the lines that they have.
func paragraphs(text string) []string {
	all := strings.Split(text, "\n\n")
	return slices.DeleteFunc(all, func(part string) bool { return strings.TrimSpace(part) == "" })
}
