// Package report shows audit records to people and to other programs: as text, as
// Markdown, as JUnit XML and as a page. What agents wrote stands in the records, so each
// format has one place that makes a text harmless there (line, block, code), and nothing
// reaches it past that. It decides nothing and opens no file.
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
)

// Run is what there is to report of a phase.
type Run struct {
	Phase  int
	Title  string
	Record *audit.Record  // the newest iteration; nil when none was judged
	Before []audit.Record // oldest first
	Used   ledger.Sum     // what the phase's calls used
	Files  int            // of the source that the phase changed, -1 where nobody can tell
	Older  bool           // Record is not the newest, so what the phase used is not told with it
	Page   string         // the file that shows all of it, "" for none
	Ended  *Ended         // how the run ended when it was not with a verdict
}

// Judged are the iterations that are shown, oldest first.
func (r Run) Judged() []audit.Record {
	if r.Record == nil {
		return r.Before
	}
	return append(slices.Clip(r.Before), *r.Record)
}

// figures are what a phase used and changed. A number that some call did not tell is a lower
// bound, and one that nobody told is unknown.
func (r Run) figures() []fact {
	took, calls, untold := r.worked()
	u, files := r.Used, audit.Unknown
	if r.Older || len(r.Judged()) == 0 && u.Rows == 0 {
		return nil
	}
	if r.Files >= 0 {
		files = wording.Count(r.Files, "file")
	}
	lost := u.Rows == 0 && calls > 0 // the ledger is
	return []fact{
		{"cost", partly(u.Cost.Amount(), u.Cost.Known == 0, lost || u.Cost.Missing > 0)},
		{"tokens", partly(wording.Thousands(u.Total.Known), u.Total.Known == 0, lost || u.Total.Missing > 0)},
		{"time of calls and replays", partly(took.Round(100*time.Millisecond).String(), took == 0, untold)},
		{"changed in the source", files},
	}
}

// used is figures on one line.
func (r Run) used() string {
	var parts []string
	for _, f := range r.figures() {
		parts = append(parts, f.name+": "+f.value)
	}
	return strings.Join(parts, ", ")
}

// partly is a figure of which a part may be missing.
func partly(text string, nothing, missing bool) string {
	switch {
	case !missing:
		return text
	case nothing:
		return audit.Unknown
	}
	return "at least " + text
}

// Ended is an end that is not a verdict.
type Ended struct {
	Code int    // exit code
	What string // in one sentence
}

// heading is the phase in a few words, its title made harmless.
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

// marked counts the contracts of a record by what they came to.
func marked(r audit.Record) map[string]int {
	n := map[string]int{}
	for _, c := range r.Contracts {
		n[mark(c, r)]++
	}
	return n
}

// counted says how many contracts came to what.
func counted(r audit.Record) string {
	n := marked(r)
	parts := []string{fmt.Sprintf("%d pass", n[audit.Pass]) + allowed(r)}
	for _, result := range []string{audit.Fail, okSoFar, audit.Unknown} {
		if n[result] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[result], shown(result)))
		}
	}
	return strings.Join(parts, ", ")
}

// allowed names the contracts that pass by a weak test, or without an answer that abl read, "" for none.
func allowed(r audit.Record) (text string) {
	const most = 5
	for _, is := range []string{"weak", "not read"} {
		var ids []string
		for _, c := range r.Contracts {
			if c.Result == audit.Pass && c.Is == is {
				ids = append(ids, c.ID)
			}
		}
		if more := len(ids) - most; more > 0 {
			ids = append(ids[:most], fmt.Sprintf("and %d more", more))
		}
		if len(ids) > 0 {
			text += " (" + is + ": " + strings.Join(ids, ", ") + ")"
		}
	}
	return text
}

// shown is a result as users read it: one word for what is not verified.
func shown(result string) string {
	if result == audit.Unknown {
		return "unverified"
	}
	return result
}

// mark is what a contract came to in a word; what is none is told as unknown.
func mark(c audit.Contract, r audit.Record) string {
	switch {
	case c.Result == audit.Pass, c.Result == audit.Fail:
		return c.Result
	case spared(c, r):
		return okSoFar
	}
	return audit.Unknown
}

// spared says that a contract replayed ok and was not tried further, because the
// iteration fails anyway.
func spared(c audit.Contract, r audit.Record) bool {
	return (c.Is == okSoFar || c.Is == "untried") && r.Verdict == audit.Fail // older records have the second
}

// told is where a contract stands, with the reason.
func told(c audit.Contract, r audit.Record) string {
	switch {
	case spared(c, r):
		return okSoFar + ": " + notFurther
	case c.Why == "":
		return stands(c)
	}
	return stands(c) + ": " + c.Why
}

// What is said of a contract whose test was ok in an iteration that failed elsewhere.
const (
	okSoFar    = "ok so far"
	notFurther = "its test is ok; abl skipped further checks because the iteration failed elsewhere"
)

// besides are the entries that name no contract of the specs.
func besides(r audit.Record) []failedspecs.Entry {
	return slices.DeleteFunc(slices.Clone(r.Entries), func(e failedspecs.Entry) bool {
		return slices.ContainsFunc(r.Contracts, func(c audit.Contract) bool { return c.ID == e.Contract })
	})
}

// stands is a contract's result with what it stands on, in a few words.
func stands(c audit.Contract) string {
	switch {
	case c.Is == "failed" || c.Is == "verified":
		return c.Result + ", by replay"
	case c.Is == "not reproduced":
		return "fail, by the Verifier, not reproduced"
	case c.Is != "":
		return shown(c.Result) + ", " + c.Is
	case c.By == audit.ByVerifier:
		return shown(c.Result) + ", by the Verifier's word"
	case c.By == audit.ByReplay:
		return shown(c.Result) + ", by replay"
	}
	return shown(c.Result) + ", not tested"
}

// proof is the evidence for one contract, a line each.
func proof(c audit.Contract, r audit.Record) (lines []string) {
	say := func(what string, words []string) {
		if len(words) > 0 {
			lines = append(lines, what+strings.Join(words, ", "))
		}
	}
	w := wordsOf(r)
	say("result: ", []string{told(c, r)})
	if c.Test != "" {
		say("test: ", []string{c.Test})
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

// words are how a report names the app, what it gives, and what stood in its place.
type words struct {
	app, answers string
	under        map[string]string // by Finding.Under, which has the words of a web server
}

// wordsOf returns the words for the kind of app that a record is about.
func wordsOf(r audit.Record) words {
	switch r.Kind {
	case "command":
		return words{"program", "output", map[string]string{
			"away": "no program", "empty 200": "a program that does nothing", "500": "a program that fails",
		}}
	case "tcp":
		return words{"app", "responses", map[string]string{
			"away": "stopped app", "empty 200": "a silent app", "500": "an app that sends a line of its own",
		}}
	}
	return words{"app", "responses", map[string]string{
		"away": "stopped app", "empty 200": "fake app (empty 200)", "500": "fake app (500)",
	}}
}

// named returns the names of what stood in the app's place.
func (w words) named(under []string) (all []string) {
	for _, name := range under {
		all = append(all, cmp.Or(w.under[name], name))
	}
	return all
}

// given returns the entry that the next Builder is given about a contract, in an iteration that failed.
func given(c audit.Contract, r audit.Record) (failedspecs.Entry, bool) {
	i := slices.IndexFunc(r.Entries, func(e failedspecs.Entry) bool { return e.Contract == c.ID })
	if i < 0 || r.Verdict != audit.Fail {
		return failedspecs.Entry{}, false
	}
	return r.Entries[i], true
}

// Next returns the command that continues after a phase with this status, and what to do before it.
func Next(status string, phase int) string {
	switch status {
	case "passed":
		return fmt.Sprintf("abl open %d runs it, abl publish brings it into your repository; "+
			"write .abl/specs/phase%d.md and run abl phase %[2]d to continue", phase, phase+1)
	case "stuck":
		return fmt.Sprintf("change .abl/specs/phase%d.md, a setting, a prompt or project.md and run abl phase %[1]d, "+
			"or run abl phase %[1]d --again without a change", phase)
	case "unverified":
		return fmt.Sprintf("abl phase %d --again", phase)
	}
	return fmt.Sprintf("abl phase %d resumes it", phase)
}

// witnessed tells of the exchange that shows a contract, "" where nothing is known of one.
func witnessed(c audit.Contract) string {
	switch {
	case c.Witness != "":
		return "witnessed: " + c.Witness
	case c.Unread:
		return "not checkable by abl"
	}
	return ""
}

// fact is something that a verdict stands on, by its name.
type fact struct{ name, value string }

// facts are what a verdict stands on.
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
		put("replay."+run.Name, cameTo(run, wordsOf(r)))
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

// evidenceOf says which replays the verdict is based on.
func evidenceOf(r audit.Record) string {
	switch {
	case r.Evidence == "off":
		return "the Verifier's word only (verify.evidence is off)"
	case len(r.Replays) == 0:
		return "no replay was made"
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

// isAltered says that answers of the app were altered in a replay, so that tests that are
// not ok in it are good ones.
func isAltered(run audit.Replay) bool { return strings.HasPrefix(run.Name, "altered-") }

// cameTo is what a replay came to, in a few words.
func cameTo(run audit.Replay, w words) string {
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
		text += ", not believed: " + run.Doubts[0]
	}
	return text
}

// tried are what the tests were run against besides the app.
func tried(r audit.Record) (all []string) {
	for _, run := range r.Replays {
		if name := underName[run.Against]; name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// underName is what Finding.Under calls what a replay was against, "" for others.
var underName = map[string]string{"no app": "away", "empty": "empty 200", "500": "500"}

// proofs are those of an iteration's containers, nil for one of a call that was not kept.
func proofs(r audit.Record) (all []*audit.Proof) {
	for _, c := range r.Calls {
		all = append(all, cmp.Or(c.Boundary, &audit.Proof{}), c.App)
	}
	for _, run := range r.Replays {
		if all = append(all, run.Boundary, run.App); run.Boundary == nil && run.Failed == "" {
			all = append(all, &audit.Proof{})
		}
	}
	return slices.DeleteFunc(all, func(b *audit.Proof) bool { return b == nil })
}

// boundaries sums the proofs of an iteration's containers up.
func boundaries(r audit.Record) string {
	boxes, checks, held, weak := 0, 0, 0, ""
	for _, p := range proofs(r) {
		if p.Box != "" {
			boxes, checks, held, weak = boxes+1, checks+p.Checks, held+p.Held, cmp.Or(weak, p.Weak)
		}
	}
	if boxes == 0 {
		return "none kept"
	}
	text := fmt.Sprintf("%d of %d checks of %d containers held", held, checks, boxes)
	if weak != "" {
		text += "; weak network: " + weak
	}
	return text
}

// when is a moment as people read it.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Line is an iteration in a table of many.
type Line struct{ Decided, Verdict, Contracts, Title string }

// Overview is a record as one line of a table.
func Overview(r audit.Record) Line {
	return Line{Decided: when(r.Decided), Verdict: line(r.Verdict), Contracts: counted(r), Title: line(r.Title)}
}
