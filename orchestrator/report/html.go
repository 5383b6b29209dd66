package report

import (
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
	"abl/internal/witness"
	"abl/internal/wording"
	"abl/roles/agent"
)

// Page is what the page of a phase shows: its records, and what is on disk beside them. Its
// texts are without secrets, and otherwise as agents wrote them.
type Page struct {
	Run
	Spent   ledger.Account                      // of the phase
	Turns   []Turn                              // oldest first
	Changes []Change                            // oldest first
	Unknown string                              // why nobody can tell what changed, "" where all is told
	Seen    map[int]map[string]witness.Exchange // by step and Finding.Witness
	Src     string                              // the folder of the source in the project
	Abl     string                              // the version that makes the page
}

// Turn is one call of an agent.
type Turn struct {
	audit.Call
	Step int
	Used ledger.Sum
	Here bool // what it printed is on this machine
	Said []agent.Message
}

// Change is what one iteration changed in the source.
type Change struct {
	Step     int
	From, To string // commits
	Files    []FileChange
}

// FileChange is a file that differs.
type FileChange struct {
	Path, Note string
	Diff       string // unified, without the names; "" where Note says why
}

// Bounds of a page, in bytes as they stand in it.
const (
	maxTalk     = 1 << 20
	maxDiffs    = 1 << 20
	maxEvidence = 1 << 19
	maxOneDiff  = 24 << 10
	maxBody     = 2 << 10 // of what the witness saw
	maxColumns  = 60      // iterations in the matrix
	maxFiles    = 300     // of an iteration
)

// allowance is how many bytes of a part of the page are left.
type allowance int

// keep makes a text harmless and takes it from what is left; false where there is no room.
func (a *allowance) keep(text string, most int) (string, bool) {
	if int(*a) <= 0 && text != "" {
		return "", false
	}
	text = wording.Short(redact.String(strings.ReplaceAll(wording.Short(text, 2*most), "\r\n", "\n")), most)
	size := len(html.EscapeString(text))
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
		"head": pageHead, "line": line, "when": when, "count": countText, "usd": usdText, "hash": func(s string) string { return s[:min(len(s), 12)] },
		"things": wording.Count, "number": func(n int) string { return grouped(int64(n)) }, "share": shareText, "words": func(s string) string { return markWords[s] },
		"sign": func(s string) string { return markSigns[s] }, "paragraphs": paragraphs, "span": span,
	}).ParseFS(pageFiles, "page/page.html")
})

// pageHead are the style and the policy by which the page may load and run nothing else.
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
		err = t.Execute(w, viewOf(p))
	}
	if err != nil {
		return fmt.Errorf("cannot make the page: %w", err)
	}
	return nil
}

// pageView is a page as the template shows it.
type pageView struct {
	Page
	Heading, Mark, Sentence string
	Figures, Hashes         []fact
	Matrix                  matrix
	Iterations              []iteration
	Diffs                   []diffs
	Talks                   []talk
	Times                   timeline
	Plots                   []plot
	Guard                   guard
}

func viewOf(p Page) pageView {
	v := pageView{Page: p, Heading: p.heading(line), Matrix: matrixOf(p), Diffs: diffsOf(p), Talks: talksOf(p), Times: timelineOf(p), Guard: guardOf(p), Hashes: hashes(p)}
	v.Mark, v.Sentence = verdictWords(p.Run)
	for _, r := range p.records() {
		v.Iterations = append(v.Iterations, iterationOf(r))
	}
	for _, by := range []struct {
		by   ledger.By
		name string
	}{{ledger.ByRole, "Role"}, {ledger.ByModel, "Model"}, {ledger.ByIter, "Iteration"}} {
		if groups := p.Spent.By[by.by]; len(groups) > 0 {
			v.Plots = append(v.Plots, plotOf(by.name, groups, p.Spent.All))
		}
	}
	v.Figures = []fact{{"Contracts", "none judged"}, {"Iterations", strconv.Itoa(len(p.records()))}, {"Time", v.Times.Whole},
		{"Tokens", "unknown"}, {"Cost", "unknown"}, {"Files changed", "unknown"}}
	if p.Record != nil {
		v.Figures[0].value = fmt.Sprintf("%d of %d hold", marked(*p.Record)[audit.Pass], len(p.Record.Contracts))
	}
	if all := p.Spent.All; all.Rows > 0 {
		v.Figures[3].value, v.Figures[4].value = countText(all.Total), usdText(all.Cost)
	}
	if p.Files >= 0 {
		v.Figures[5].value = grouped(int64(p.Files))
	}
	return v
}

// records are all of the phase, oldest first.
func (r Run) records() []audit.Record {
	all := slices.Clone(r.Before)
	if r.Record != nil {
		all = append(all, *r.Record)
	}
	return all
}

// marked counts the contracts of a record by what they came to.
func marked(r audit.Record) map[string]int {
	n := map[string]int{}
	for _, c := range r.Contracts {
		n[mark(c, r)]++
	}
	return n
}

// verdictWords are the phase's verdict in a word and in a sentence.
func verdictWords(run Run) (is, sentence string) {
	if run.Record == nil {
		return audit.Unknown, "No iteration was judged yet."
	}
	r := *run.Record
	n, all := marked(r), wording.Count(len(r.Contracts), "contract")
	pace := " after " + wording.Count(r.Iteration, "iteration")
	switch {
	case r.Verdict == audit.Pass && r.Evidence == "off":
		return audit.Pass, "Passed, on the Verifier’s word alone" + pace + "."
	case r.Verdict == audit.Pass && r.Iteration == 0:
		return audit.Pass, "Passed again, by a replay: all " + all + " hold."
	case r.Verdict == audit.Pass:
		return audit.Pass, "Passed: all " + all + " hold" + pace + "."
	case r.Verdict != audit.Fail:
		return audit.Unknown, fmt.Sprintf("Unverified: %d of %s not shown to hold%s.", len(r.Contracts)-n[audit.Pass]-n[audit.Fail], all, pace)
	}
	word := "Refuted"
	if r.Status == "stuck" {
		word = "Stuck"
	}
	if n[audit.Fail] == 0 {
		return audit.Fail, fmt.Sprintf("%s%s: %s that no contract names.", word, pace, wording.Count(len(besides(r)), "failure"))
	}
	return audit.Fail, fmt.Sprintf("%s: %d of %s fail%s.", word, n[audit.Fail], all, pace)
}

// Name and Value are what a template reads of a fact.
func (f fact) Name() string  { return f.name }
func (f fact) Value() string { return f.value }

// Signs and words of what a contract or an iteration came to: colour alone tells nothing.
var (
	markSigns = map[string]string{audit.Pass: "✓", "weak": "≈", audit.Fail: "✕", "untried": "–", audit.Unknown: "?", "unverified": "?", "": "·"}
	markWords = map[string]string{audit.Pass: "pass", "weak": "weak pass", audit.Fail: "fail", "untried": "untried", audit.Unknown: "not shown", "unverified": "unverified", "": "not there yet"}
)

// grouped groups digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// whatIsKnown says what is known of a sum of which a part may be missing.
func whatIsKnown(known string, nothing bool, missing int) string {
	switch {
	case missing == 0:
		return known
	case nothing:
		return "unknown"
	}
	return "≥ " + known
}

func countText(c ledger.Counter) string {
	return whatIsKnown(grouped(c.Known), c.Known == 0, c.Missing)
}

func usdText(m ledger.Money) string { return whatIsKnown("$"+m.Known.Short(), m.Known == 0, m.Missing) }

// shareText is how much of the input came from the cache.
func shareText(s *ledger.Share) string {
	if s == nil {
		return "unknown"
	}
	missing := 0
	if s.AtLeast {
		missing = 1
	}
	return whatIsKnown(fmt.Sprintf("%.0f %%", 100*s.Known), s.Known == 0, missing)
}

// span is a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "unknown"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
}

// paragraphs are a text's, with the lines that they have.
func paragraphs(text string) (all []string) {
	for part := range strings.SplitSeq(text, "\n\n") {
		if part = strings.Trim(part, "\n"); strings.TrimSpace(part) != "" {
			all = append(all, part)
		}
	}
	return all
}
