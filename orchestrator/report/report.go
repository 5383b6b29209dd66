// Package report renders audit records as text, Markdown, JUnit XML and HTML. Records contain texts
// by agents. In each format, line, block or code makes every text harmless before it is written. The
// package opens no file.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/ledger"
	"abl/internal/wording"
	"abl/orchestrator/evidence"
)

// Run is the data for a report on a phase.
type Run struct {
	Phase       int
	Title       string
	Record      *audit.Record  // the newest iteration; nil if none was judged yet
	Before      []audit.Record // oldest first
	Used        ledger.Sum     // usage of the phase's calls
	Files       int            // number of source files that the phase changed, -1 if unknown
	Older       bool           // Record is not the newest iteration, so Used is not shown
	Page        string         // the file of the HTML page, or ""
	Ended       *Ended         // how a run without a verdict ended
	Unpublished bool           // abl publish would bring something into the user's repository
	More        bool           // the next phase has a spec
}

// Judged returns the iterations that are shown, oldest first.
func (r Run) Judged() []audit.Record {
	if r.Record == nil {
		return r.Before
	}
	return append(slices.Clip(r.Before), *r.Record)
}

// figures returns usage and changes of a phase. A number is shown as a lower bound if some call did
// not report it, and as unknown if no call did.
func (r Run) figures() []fact {
	took, calls, unknown := r.worked()
	u, files := r.Used, audit.Unknown
	if r.Older || len(r.Judged()) == 0 && u.Rows == 0 {
		return nil
	}
	if r.Files >= 0 {
		files = wording.Count(r.Files, "file")
	}
	lost := u.Rows == 0 && calls > 0 // the ledger is missing
	return []fact{
		{"cost", partly(u.Cost.Amount(), u.Cost.Known == 0, lost || u.Cost.Missing > 0)},
		{"tokens", partly(wording.Thousands(u.Total.Known), u.Total.Known == 0, lost || u.Total.Missing > 0)},
		{"time of calls and replays", partly(took.Round(100*time.Millisecond).String(), took == 0, unknown)},
		{"changed in the source", files},
	}
}

// used returns the figures on one line.
func (r Run) used() string {
	var parts []string
	for _, f := range r.figures() {
		parts = append(parts, f.name+": "+f.value)
	}
	return strings.Join(parts, ", ")
}

// partly returns a figure, as a lower bound if a part is missing.
func partly(text string, nothing, missing bool) string {
	switch {
	case !missing:
		return text
	case nothing:
		return audit.Unknown
	}
	return "at least " + text
}

// Ended is the end of a run without a verdict.
type Ended struct {
	Code int    // exit code
	What string // in one sentence
}

// heading returns the number and title of the phase. safe makes the title harmless.
func (r Run) heading(safe func(string) string) string {
	title := r.Title
	if r.Record != nil {
		title = r.Record.Title
	}
	if title != "" {
		title = ": " + safe(title)
	}
	return fmt.Sprintf("phase %d%s", r.Phase, title)
}

// countMarks counts the contracts of a record by result.
func countMarks(r audit.Record) map[string]int {
	n := map[string]int{}
	for _, c := range r.Contracts {
		n[mark(c, r)]++
	}
	return n
}

// counted lists the number of contracts by result.
func counted(r audit.Record) string {
	n := countMarks(r)
	parts := []string{fmt.Sprintf("%d pass", n[audit.Pass]) + allowed(r)}
	for _, result := range []string{audit.Fail, okSoFar, audit.Unknown} {
		if n[result] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[result], shown(result)))
		}
	}
	return strings.Join(parts, ", ")
}

// allowed lists the contracts that pass by a weak test or without a body that abl read, or "".
func allowed(r audit.Record) (text string) {
	for _, is := range []string{"weak", "not read"} {
		var ids []string
		for _, c := range r.Contracts {
			if c.Result == audit.Pass && c.Is == is {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) > 0 {
			text += " (" + is + ": " + wording.Few(ids, evidence.MostShown, ", ") + ")"
		}
	}
	return text
}

// shown returns a result in the user's words.
func shown(result string) string {
	if result == audit.Unknown {
		return "unverified"
	}
	return result
}

// mark returns the result of a contract as a word.
func mark(c audit.Contract, r audit.Record) string {
	switch {
	case c.Result == audit.Pass, c.Result == audit.Fail:
		return c.Result
	case skippedChecks(c, r):
		return okSoFar
	}
	return audit.Unknown
}

// skippedChecks reports whether a contract's test was ok and abl skipped further checks because the
// iteration failed elsewhere.
func skippedChecks(c audit.Contract, r audit.Record) bool {
	return (c.Is == okSoFar || c.Is == "untried") && r.Verdict == audit.Fail // older records have the second
}

// standingText returns the result of a contract and the reason.
func standingText(c audit.Contract, r audit.Record) string {
	switch {
	case skippedChecks(c, r):
		return okSoFar + ": " + notFurther
	case c.Why == "":
		return resultText(c)
	}
	return resultText(c) + ": " + c.Why
}

// The texts for a contract whose test was ok in an iteration that failed elsewhere.
const (
	okSoFar    = "ok so far"
	notFurther = "its test is ok; abl skipped further checks because the iteration failed elsewhere"
)

// otherEntries returns the entries that name no contract of the specs.
func otherEntries(r audit.Record) []failedspecs.Entry {
	return slices.DeleteFunc(slices.Clone(r.Entries), func(e failedspecs.Entry) bool {
		return slices.ContainsFunc(r.Contracts, func(c audit.Contract) bool { return c.ID == e.Contract })
	})
}

// resultText returns a contract's result and its basis in a few words.
func resultText(c audit.Contract) string {
	switch {
	case c.Is == "failed" || c.Is == "verified":
		return c.Result + ", by replay"
	case c.Is == "not reproduced":
		return "fail, by the Verifier, not reproduced"
	case c.Is != "":
		return shown(c.Result) + ", " + c.Is
	case c.By == audit.ByVerifier:
		return shown(c.Result) + ", by the Verifier's report"
	case c.By == audit.ByReplay:
		return shown(c.Result) + ", by replay"
	}
	return shown(c.Result) + ", not tested"
}

// proof returns the evidence for one contract, one line each.
func proof(c audit.Contract, r audit.Record) (lines []string) {
	say := func(what string, words []string) {
		if len(words) > 0 {
			lines = append(lines, what+strings.Join(words, ", "))
		}
	}
	w := wordsOf(r)
	say("result: ", []string{standingText(c, r)})
	if c.Test != "" {
		say("test output: ", []string{c.Test})
	}
	say("replays against the "+w.app+": ", c.Runs)
	if c.Result == audit.Pass {
		isOK := func(name string) bool { return slices.Contains(c.Under, name) }
		say("not ok, as it should be, against: ", w.named(slices.DeleteFunc(tried(r), isOK)))
	}
	say("ok as well under: ", w.named(c.Under))
	if text := witnessed(c); text != "" {
		lines = append(lines, text)
	}
	if c.Unshown != "" {
		lines = append(lines, "not checked whether its test detects altered "+w.answers+": "+c.Unshown)
	}
	return lines
}

// vocabulary has the words for the app, its output and the null apps.
type vocabulary struct {
	app, answers string
	under        map[string]string // by Finding.Under, which has the words for a web server
}

// wordsOf returns the words for the kind of app that a record is about.
func wordsOf(r audit.Record) vocabulary {
	switch r.Kind {
	case "command":
		return vocabulary{"program", "output", map[string]string{
			"away": "no program", "empty 200": "a program that does nothing", "500": "a program that fails",
		}}
	case "tcp":
		return vocabulary{"app", "responses", map[string]string{
			"away": "stopped app", "empty 200": "a silent app", "500": "an app that sends a fixed line",
		}}
	}
	return vocabulary{"app", "responses", map[string]string{
		"away": "stopped app", "empty 200": "null app (empty 200)", "500": "null app (500)",
	}}
}

// named returns the names of null apps.
func (w vocabulary) named(under []string) (all []string) {
	for _, name := range under {
		all = append(all, cmp.Or(w.under[name], name))
	}
	return all
}

// given returns the entry for the next Builder about a contract, in an iteration that failed.
func given(c audit.Contract, r audit.Record) (failedspecs.Entry, bool) {
	i := slices.IndexFunc(r.Entries, func(e failedspecs.Entry) bool { return e.Contract == c.ID })
	if i < 0 || r.Verdict != audit.Fail {
		return failedspecs.Entry{}, false
	}
	return r.Entries[i], true
}

// Next returns the command that continues after the phase got this status, and what to do before it.
func (r Run) Next(status string) string {
	phase := r.Phase
	switch status {
	case "passed":
		text := fmt.Sprintf("abl open %d runs it", phase)
		if r.Unpublished {
			text += ", abl publish brings it into your repository"
		}
		if r.More {
			return text + "; abl run continues with the next phase"
		}
		return text + fmt.Sprintf("; write .abl/specs/phase%d.md and run abl phase %[1]d to continue", phase+1)
	case "stuck":
		return fmt.Sprintf("change .abl/specs/phase%d.md, a setting, a prompt or project.md and run abl phase %[1]d, "+
			"or run abl phase %[1]d --again without a change", phase)
	case "unverified":
		return fmt.Sprintf("abl phase %d --again", phase)
	}
	return fmt.Sprintf("abl phase %d resumes it", phase)
}

// witnessed returns the exchange that shows a contract, or "".
func witnessed(c audit.Contract) string {
	switch {
	case c.Witness != "":
		return "witnessed: " + c.Witness
	case c.Unread:
		return "not checkable by abl"
	}
	return ""
}

// fact is a named value.
type fact struct{ name, value string }

// facts returns the basis of a verdict.
func facts(r audit.Record) (all []fact) {
	put := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	put("commit.source", r.Commits.Source)
	put("commit.tree", r.Commits.Tree)
	put("commit.tests", r.Commits.Tests)
	put("commit.tag", r.Commits.Tag)
	put("evidence", evidenceOf(r))
	put("strength", strengthOf(&r))
	put("boundary", boundaries(r))
	for _, s := range r.Specs {
		put(fmt.Sprintf("spec.%d.sha256", s.Phase), s.SHA256)
	}
	for _, run := range r.Replays {
		put("replay."+run.Name, replayText(run, wordsOf(r)))
	}
	for _, c := range r.Calls {
		held, class := "no boundary proof", c.Class
		if c.Boundary != nil {
			held = fmt.Sprintf("boundary %d of %d", c.Boundary.Held, c.Boundary.Checks)
		}
		if c.Finish != "" && c.Class != "done" {
			class += " (" + c.Finish + ")"
		}
		put("call."+c.Key, strings.Join([]string{c.Role, strings.TrimSpace(c.Agent + " " + c.Model), class, held}, ", "))
	}
	for _, note := range r.Notes {
		put("note", note)
	}
	return all
}

// evidenceOf returns which replays the verdict is based on.
func evidenceOf(r audit.Record) string {
	switch {
	case r.Evidence == "off":
		return "the Verifier's word only (verify.evidence is off)"
	case len(r.Replays) == 0:
		return "no replay"
	}
	altered := 0
	for _, run := range r.Replays {
		if isAltered(run) {
			altered++
		}
	}
	w := wordsOf(r)
	against := append([]string{w.app}, w.named(tried(r))...)
	text := wording.Count(len(r.Replays)-altered, "replay") + " by abl: " + strings.Join(against, ", ")
	if altered > 0 {
		text += fmt.Sprintf("; %d more with altered %s", altered, w.answers)
	}
	if len(r.Calls) == 0 {
		text += "; no agent was called"
	}
	return text
}

// isAltered reports whether responses of the app were altered in a replay, in which good tests are
// not ok.
func isAltered(run audit.Replay) bool { return strings.HasPrefix(run.Name, "altered-") }

// replayText returns the result of a replay in a few words.
func replayText(run audit.Replay, w vocabulary) string {
	switch {
	case run.Failed != "":
		return "the " + w.app + " did not start: " + run.Failed
	case run.Gone != "":
		return run.Gone
	}
	took := (time.Duration(run.MS) * time.Millisecond).Round(100 * time.Millisecond)
	text := fmt.Sprintf("%d of %d tests ok, exit code %d, %s", run.OK, run.Tests, run.Exit, took)
	if isAltered(run) {
		text = "with altered " + w.answers + ": " + text
	}
	if other := w.under[underName[run.Against]]; other != "" {
		text = "against " + other + ": " + text
	}
	if run.Late {
		text += ", stopped at its time limit"
	}
	if len(run.Doubts) > 0 {
		text += ", doubtful: " + run.Doubts[0]
	}
	return text
}

// tried returns what the tests were run against in addition to the app.
func tried(r audit.Record) (all []string) {
	for _, run := range r.Replays {
		if name := underName[run.Against]; name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// underName maps what a replay was against to its name in Finding.Under.
var underName = map[string]string{"no app": "away", "empty": "empty 200", "500": "500"}

// proofs returns the proofs of an iteration's containers. A missing one is empty.
func proofs(r audit.Record) (all []*audit.Proof) {
	for _, c := range r.Calls {
		all = append(all, cmp.Or(c.Boundary, &audit.Proof{}), c.App)
	}
	for _, run := range r.Replays {
		all = append(all, run.Boundary, run.App)
		if run.Boundary == nil && run.Failed == "" {
			all = append(all, &audit.Proof{})
		}
	}
	return slices.DeleteFunc(all, func(b *audit.Proof) bool { return b == nil })
}

// boundaries summarizes the proofs of an iteration's containers.
func boundaries(r audit.Record) string {
	containers, checks, held, weak := 0, 0, 0, ""
	for _, p := range proofs(r) {
		if p.Container != "" {
			containers, checks, held, weak = containers+1, checks+p.Checks, held+p.Held, cmp.Or(weak, p.Weak)
		}
	}
	if containers == 0 {
		return "none kept"
	}
	text := fmt.Sprintf("%d of %d checks of %d containers held", held, checks, containers)
	if weak != "" {
		text += "; weak network: " + weak
	}
	return text
}

// when returns a time in UTC.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Line is an iteration in a table.
type Line struct{ Decided, Verdict, Contracts, Title string }

// Overview returns a record as one line of a table.
func Overview(r audit.Record) Line {
	return Line{Decided: when(r.Decided), Verdict: line(r.Verdict), Contracts: counted(r), Title: line(r.Title)}
}
