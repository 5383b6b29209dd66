package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/internal/usage"
	"abl/internal/wording"
)

// story sums up the events so far.
type story struct {
	began     time.Time // of this run of abl
	phase     int
	iteration int
	role      string    // of the running call, "" between calls
	actions   int       // of that call
	doing     string    // its last action, in the agent's words, or the current wait
	underWay  string    // what abl does without an agent, "" for nothing
	since     time.Time // when that began
	spent     string    // what the call has used so far, "" if that is not known
	ended     bool      // the run has ended
	used      ledger.Totals
	noUsage   bool // a call has ended, and its usage has not been reported yet
	refused   bool // the command failed before anything began
}

// add updates the summary with an event.
func (s *story) add(e state.Event) {
	if s.began.IsZero() {
		s.began = e.Time
		s.refused = e.Kind == state.Outcome && e.Exit != nil && *e.Exit != exit.Passed
	}
	if e.Phase != 0 {
		s.phase = e.Phase
	}
	if e.Iteration != 0 {
		s.iteration = e.Iteration
	}
	if e.Kind == state.Running {
		s.spent = RunningWords(e)
		return
	}
	if s.noUsage && e.Kind != state.Usage { // unknown, not 0
		s.used.Add(ledger.Row{Source: ledger.Nobody})
	}
	s.noUsage, s.underWay = e.Kind == state.CallEnd, ""
	switch e.Kind {
	case state.Progress:
		s.underWay, s.since = e.Text, e.Time
	case state.CallStart, state.CallResume:
		s.role, s.actions, s.doing, s.spent = e.Role, 0, "", ""
	case state.Action:
		s.actions++
		s.doing = e.Text
	case state.CallEnd:
		s.role, s.doing, s.spent = "", "", ""
	case state.Wait:
		s.role, s.doing = "", waitWords(e)
	case state.Outcome:
		s.ended = true
	case state.Usage:
		s.used.Add(ledger.Row{Count: usage.Count{Total: e.Tokens}, CostUSD: e.CostUSD})
	}
}

// elapsed returns for how long this run of abl has been going on.
func (s *story) elapsed(now time.Time) time.Duration {
	if s.began.IsZero() {
		return 0
	}
	return max(now.Sub(s.began), 0)
}

// tone selects the colour of a text.
type tone int

const (
	calm tone = iota
	good
	bad
	warn
	quiet
)

// fact is an event in words.
type fact struct {
	who   string
	agent bool // the words are the agent's, not abl's
	text  string
	tone  tone
	below string // lines of output that belong to it
}

// describe returns an event in words, given the events before it.
func describe(e state.Event, s *story) fact {
	f := fact{who: cmp.Or(e.Role, "abl"), text: e.Text, below: e.Output}
	switch e.Kind {
	case state.PhaseStart:
		f.text = phaseWords(e)
	case state.CallStart:
		f.text = fmt.Sprintf("iteration %d starts%s: %s", e.Iteration, again(e.Call), agentWords(e))
	case state.CallResume:
		f.text = fmt.Sprintf("iteration %d is still running, reattached: %s", e.Iteration, agentWords(e))
	case state.Action:
		f.agent, f.tone = true, quiet
	case state.CallEnd:
		f = endWords(f, e, s.actions)
	case state.Wait:
		f.text, f.tone = withReason(waitWords(e), e.Text), warn
	case state.Usage:
		f.text, f.tone = usageWords(e), quiet
	case state.Commit:
		f.text = joined("commit "+e.Hash[:min(len(e.Hash), 7)]+" "+e.Subject, e.Text)
	case state.Preparing:
		f.who, f.text = "app", withReason("prepares", e.Text)
	case state.Prepared:
		f.who, f.text = "app", "prepared after "+span(e.MS)
		if e.Text != "" {
			f.text, f.tone = withReason("is not prepared", e.Text), bad
		}
	case state.AppStart:
		f.who, f.text = "app", withReason("starts", e.Text)
	case state.AppReady:
		f.who, f.text = "app", withReason("ready after "+span(e.MS), e.Text)
	case state.AppFailed:
		f.who, f.text, f.tone = "app", withReason("does not start", e.Text), bad
	case state.Verdict:
		f.text, f.tone = withReason(e.Verdict, e.Text), verdictTone(e.Verdict)
	case state.Outcome:
		f = outcomeWords(f, e, s)
	case stopping:
		f.tone = warn
	}
	return f
}

func phaseWords(e state.Event) string {
	text := fmt.Sprintf("phase %d", e.Phase)
	if e.Round > 1 {
		text += fmt.Sprintf(", round %d", e.Round)
	}
	return withReason(text+weakWords(e), e.Text)
}

// again names the attempt of a call after the first, "" for the first.
func again(call string) string {
	if _, attempt, is := strings.Cut(call, "."); is && attempt != "1" {
		return " (attempt " + attempt + ")"
	}
	return ""
}

// agentWords returns an event's agent and model.
func agentWords(e state.Event) string { return joined(e.Agent, e.Model) + weakWords(e) }

// weakWords marks events on networks whose isolation is not proven.
func weakWords(e state.Event) string {
	if e.Weak {
		return " (weak network)"
	}
	return ""
}

// endWords describes the end of a call with its number of actions.
func endWords(f fact, e state.Event, actions int) fact {
	f.text = e.Class
	switch e.Class {
	case "oom", "flood", "disk", "idle": // the reason names the limit
		f.text = "killed"
	}
	if e.MS > 0 {
		f.text += " after " + span(e.MS)
	}
	if actions > 0 {
		f.text += fmt.Sprintf(", %s", wording.Count(actions, "action"))
	}
	f.text = withReason(f.text, e.Text)
	if e.Class != "done" {
		f.tone = warn
	}
	return f
}

// waitWords returns how long abl waits, and until when.
func waitWords(e state.Event) string {
	return fmt.Sprintf("waits %s, until %s UTC", span(e.MS), e.Until.UTC().Format("15:04:05"))
}

// RunningWords returns the usage of a running call from a `running` event, "" if it is unknown.
func RunningWords(e state.Event) string {
	if e.Tokens == nil {
		return ""
	}
	text := wording.Thousands(*e.Tokens) + " tokens"
	if e.CostUSD != "" {
		text = joined(text, e.CostUSD+" USD")
	}
	if e.AtLeast {
		text = "at least " + text
	}
	return text
}

// stillRunning returns the line for a run without news for a minute: CI services stop jobs that print
// nothing.
func stillRunning(s *story, now time.Time) fact {
	f := fact{who: cmp.Or(s.role, "abl"), text: "still running", tone: quiet}
	if s.underWay != "" {
		f.text += ": " + s.underWay + ", for " + clock(max(0, now.Sub(s.since)))
	}
	if s.role != "" && s.actions > 0 {
		f.text = joined(f.text, wording.Count(s.actions, "action"))
	}
	f.text = joined(f.text, s.spent)
	return f
}

func usageWords(e state.Event) string {
	var one story
	one.add(e)
	text, cost := amounts(one.used.Account().All)
	if e.Model != "" {
		text += " (" + e.Model + ")"
	}
	return joined(text, cost)
}

// outcomeWords sums up a run: its end, its time, its tokens and cost.
func outcomeWords(f fact, e state.Event, s *story) fact {
	f.who, f.text = "abl", cmp.Or(e.Text, e.Verdict)
	f.tone = verdictTone(e.Verdict)
	if e.Exit != nil {
		f.text = cmp.Or(f.text, "ended")
		f.tone = good
	}
	more := []string{clock(s.elapsed(e.Time))}
	if used := s.used.Account().All; used.Rows > 0 {
		more = append(more, UsedWords(used))
	}
	if e.Exit != nil && *e.Exit != exit.Passed {
		f.tone = bad
		more = append(more, fmt.Sprintf("exit code %d", *e.Exit))
	}
	if e.Weak {
		more = append(more, "weak network")
	}
	f.text += " (" + strings.Join(more, ", ") + ")"
	return f
}

// verdictTone returns the tone of a verdict, calm for "".
func verdictTone(v string) tone {
	return map[string]tone{"pass": good, "fail": bad, "unverified": warn}[v]
}

// UsedWords returns the tokens and cost of calls. Missing numbers are "unknown" or "at least", never 0.
func UsedWords(sum ledger.Sum) string { return joined(amounts(sum)) }

func amounts(sum ledger.Sum) (tokens, cost string) {
	tokens = atLeast(wording.Thousands(sum.Total.Known)+" tokens", "tokens unknown", sum.Total.Missing, sum.Rows)
	return tokens, atLeast(sum.Cost.Amount(), "cost unknown", sum.Cost.Missing, sum.Rows)
}

// atLeast words a sum of which missing of all parts are unknown.
func atLeast(known, unknown string, missing, all int) string {
	switch missing {
	case 0:
		return known
	case all:
		return unknown
	}
	return "at least " + known
}

// withReason returns "what: reason", or what if there is no reason.
func withReason(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// span formats a duration in milliseconds: 1.2s, 34s or 5:06.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return clock(d)
}

// clock formats a duration as m:ss, or h:mm:ss.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
