// Package look has the commands that show a project: its status, calls, costs, reports, specs and apps. They
// change nothing but the files that the user names.
package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/orchestrator/report"
	"abl/roles"
	"abl/roles/environment"
)

// standings is what `abl status --json` prints.
type standings struct {
	Project  string        `json:"project"`
	Working  bool          `json:"working,omitempty"` // an abl works on the project
	Phases   []phaseStatus `json:"phases"`
	Problems []string      `json:"problems,omitempty"` // of the specs as a whole

	next string // the next command, for the text
}

// phaseStatus is one phase as `abl status` shows it.
type phaseStatus struct {
	Phase     int             `json:"phase"`
	Title     string          `json:"title"`
	Contracts int             `json:"contracts"`
	Status    string          `json:"status"` // of docs/state-format.md, or unsound
	Iteration int             `json:"iteration,omitempty"`
	Round     int             `json:"round,omitempty"`
	Verdict   string          `json:"verdict,omitempty"`
	Failed    []string        `json:"failed,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
	Ended     time.Time       `json:"ended,omitzero"`
	Tokens    *ledger.Counter `json:"tokens,omitempty"` // of the calls that ended
	Cost      *ledger.Money   `json:"cost_usd,omitempty"`
	Now       *running        `json:"now,omitempty"`
	Waits     *state.Outage   `json:"waits,omitempty"`

	paused bool // the phase has begun and not ended, and no abl works on it
}

// running is the work of an abl on a phase.
type running struct {
	Call  string    `json:"call,omitempty"` // "" between calls
	Role  string    `json:"role,omitempty"`
	Agent string    `json:"agent,omitempty"`
	Model string    `json:"model,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Of    int       `json:"of"` // maximum of iterations

	Tokens  *int64 `json:"tokens,omitempty"` // of the call so far
	CostUSD string `json:"cost_usd,omitempty"`
	AtLeast bool   `json:"at_least,omitempty"` // these are lower bounds
}

// StatusCommand returns `abl status`.
func StatusCommand() cli.Command {
	var watch bool
	return cli.Command{
		Name:  "status",
		Group: cli.Inspecting,
		Usage: "show the status of every phase",
		Long: `Shows each phase with the tokens and dollars of the calls that ended, the current work,
and the next command. A question mark marks an unknown number. A phase that was stopped
before its verdict is paused: abl phase N resumes it.`,
		Examples: "abl status\nabl status --watch\nabl status --json",
		Flags: []cli.Flag{
			{Name: "watch", To: &watch, Short: "w", Usage: "show each change, until no abl works here"},
			{Name: "json", Usage: "one JSON document (docs/json.md), with --watch one per line"},
		},
		Run: project.Looking(project.Restored(func(ctx context.Context, s *project.Project) error {
			return runStatus(ctx, s, watch)
		})),
	}
}

// pollStatus is the time between two checks for a change.
const pollStatus = time.Second

func runStatus(ctx context.Context, s *project.Project, watch bool) error {
	screen := view.CanSteer(s.In.Bare.Stdout) && !s.In.Bool("json")
	for last := ""; ; {
		all, err := standingsOf(s)
		if err != nil {
			return err
		}
		if !watch && s.In.Bool("json") {
			return s.In.JSON(all)
		}
		if !watch {
			return s.In.Print(all.text(s.In, time.Now()))
		}
		now := time.Time{} // only on a terminal the elapsed time is shown
		if screen {
			now = time.Now()
		}
		text := all.text(s.In, now)
		switch {
		case text == last:
		case screen:
			view.Redraw(s.In.Result, text)
		case s.In.Bool("json"):
			err = s.In.JSON(all)
		default:
			err = s.In.Print(text + "\n")
		}
		last = text
		if err != nil || !all.Working {
			return err
		}
		if proc.Pause(ctx, pollStatus) != nil {
			return nil // Ctrl-C is the usual way to end it
		}
	}
}

// standingsOf returns the status of every phase.
func standingsOf(s *project.Project) (all standings, err error) {
	working := hostfs.Locked(s.Paths.Lock())
	f, err := s.State()
	if err != nil {
		return all, err
	}
	calls, err := s.Calls()
	if err != nil {
		return all, err
	}
	weak := map[int]int{} // by phase: calls on networks without a proof
	for i, c := range calls {
		proofs, err := c.Proofs()
		calls[i].Unread = errors.Join(c.Unread, err)
		if slices.ContainsFunc(proofs, func(p roles.Boundary) bool { return p.Weak != "" }) {
			weak[c.Phase]++
		}
	}
	totals := s.Totals()
	// abl costs reports invalid lines.
	if err := ledger.Open(s.Paths.Ledger()).Scan(totals.Add, func(int, string) {}); err != nil {
		s.In.Warn(err)
	}
	used := totals.Account()
	specs, problems := spec.LoadDir(s.Paths.Specs())
	all = standings{Project: s.Paths.Root, Working: working, Phases: []phaseStatus{}}
	apart := orchestrator.Drift(f, specs)
	for _, n := range specs.Numbers() {
		st := statusOf(f.Phase(n), specs, n, problems)
		if sum := used.Phase(n); sum != nil {
			st.Tokens, st.Cost = &sum.Total, &sum.Cost
		}
		st.run(f.Phase(n), calls, working, s.Conf.Loop.MaxVerifierIterations)
		if st.Now != nil && st.Now.Call != "" {
			st.Now.count(environment.Used(s.Paths, st.Now.Call))
		}
		if err := apart[n]; err != nil {
			st.Notes = append(st.Notes, err.Error()+": "+exit.Hint(err))
		}
		if weak[n] > 0 {
			st.Notes = append(st.Notes, fmt.Sprintf("weak network: %s ran on networks without a proof of isolation (--%s)",
				wording.Count(weak[n], "call"), cli.WeakFlag))
		}
		all.Phases = append(all.Phases, st)
	}
	for _, p := range problems {
		if p.Fatal && len(all.Phases) > 0 && !slices.Contains(specs.Numbers(), p.Phase) {
			all.Problems = append(all.Problems, p.String())
		}
	}
	if all.next = exit.Hint(s.Unfetched); s.Unfetched == nil {
		all.next = nextStep(all, f, specs, apart, s.Unpublished())
	}
	return all, nil
}

// run adds notes about damaged records of the phase, and the current work. A call can still be running
// although no abl works on the project.
func (st *phaseStatus) run(p state.Phase, calls []project.Call, working bool, most int) {
	now := running{Of: most}
	for _, c := range calls {
		if c.Phase != st.Phase {
			continue
		}
		if c.Unread != nil {
			text := "damaged: " + strings.ReplaceAll(c.Unread.Error(), "\n", "; ")
			if c.Key == p.Call && p.OnItsWay() {
				text += fmt.Sprintf("; abl phase %d renames the file and continues without it", c.Phase)
			}
			st.Notes = append(st.Notes, text)
		}
		if c.Key == p.Call && !c.Ended {
			now = running{Call: c.Key, Role: c.Role.Name, Agent: c.Agent, Model: c.Model, Since: c.Begun, Of: most}
		}
	}
	if !p.OnItsWay() {
		return
	}
	st.paused = !working
	switch {
	case working:
		st.Now = &now
	case now.Call != "":
		st.Notes = append(st.Notes, fmt.Sprintf("call %s had not ended when abl was stopped: abl phase %d resumes it",
			now.Call, st.Phase))
	default:
		if c := lastCall(calls, st.Phase); c != nil && c.Failed() {
			st.Notes = append(st.Notes,
				fmt.Sprintf("the %s's call %s ended as %q on %s UTC (docs/faults.md): abl logs %[2]s shows it",
					c.Role.Name, c.Key, c.Outcome.Class, c.Outcome.Ended.UTC().Format(time.DateTime)))
		}
	}
}

// lastCall returns the last call of a phase that ended, nil without one.
func lastCall(calls []project.Call, n int) *project.Call {
	for _, c := range slices.Backward(calls) {
		if c.Phase == n && c.Ended {
			return &c
		}
	}
	return nil
}

// nextStep returns the next command for the project, with what it does.
func nextStep(all standings, f *state.File, specs spec.Set, drift map[int]error, unpublished bool) string {
	n, pending := orchestrator.NextPhase(f, specs)
	next := report.Run{Phase: n, Unpublished: unpublished}
	i := slices.IndexFunc(all.Phases, func(s phaseStatus) bool { return s.Phase == n })
	for _, err := range drift {
		if errors.As(err, new(orchestrator.Frozen)) {
			return exit.Hint(err)
		}
	}
	switch {
	case len(all.Phases) == 0:
		return ""
	case all.Working:
		return "abl logs -f follows the agents, abl stop stops the run"
	case len(all.Problems) > 0:
		return "abl spec lint names what to change in the specs"
	case !pending:
		return next.Next(string(state.Passed))
	}
	st := all.Phases[i]
	switch {
	case st.Status == unsound:
		return fmt.Sprintf("abl spec lint %d names what to change in its spec", n)
	case st.Waits != nil:
		return fmt.Sprintf("abl phase %d, after %s UTC", n, st.Waits.Until.UTC().Format(time.DateTime))
	case st.Status == string(state.Passed):
		return fmt.Sprintf("abl phase %d begins a round on its changed spec", n)
	case st.Status == string(state.Ready):
		return fmt.Sprintf("abl phase %d builds and verifies it, abl phase %[1]d --dry-run shows how", n)
	}
	return next.Next(st.Status)
}

// shown returns the status for the table.
func (st phaseStatus) shown() string {
	if st.paused {
		return "paused"
	}
	return st.Status
}

// describe returns the current work. If now is zero it leaves out the elapsed time.
func (st phaseStatus) describe(now time.Time) string {
	r := st.Now
	if r.Role == "" {
		return fmt.Sprintf("iteration %d of at most %d, no agent is running", st.Iteration, r.Of)
	}
	text := fmt.Sprintf("the %s works on iteration %d of at most %d since %s UTC", r.Role, st.Iteration, r.Of,
		r.Since.UTC().Format(time.TimeOnly))
	if !now.IsZero() {
		text += fmt.Sprintf(" (%s)", now.Sub(r.Since).Round(time.Second))
	}
	text = fmt.Sprintf("%s: %s (%s), call %s", text, r.Agent, r.Model, r.Call)
	if r.Tokens == nil {
		return text
	}
	return text + ", " + view.RunningWords(state.Event{Tokens: r.Tokens, CostUSD: r.CostUSD, AtLeast: r.AtLeast}) +
		" so far"
}

// count sets the usage of a call so far.
func (r *running) count(used *roles.Used) {
	if used == nil {
		return
	}
	r.Tokens, r.AtLeast = &used.Tokens, used.AtLeast
	if used.USD != nil {
		r.CostUSD = used.USD.String()
	}
}

// statusOf returns the status of phase n.
func statusOf(p state.Phase, specs spec.Set, n int, problems []spec.Problem) phaseStatus {
	this, sound := specs.Phase(n)
	st := phaseStatus{
		Phase:     n,
		Title:     this.Title,
		Contracts: len(this.Contracts),
		Status:    string(p.Status),
		Iteration: p.Iteration,
		Round:     p.Round,
		Verdict:   p.LastVerdict,
		Ended:     p.Ended,
	}
	for _, e := range p.Failed {
		st.Failed = append(st.Failed, e.Spec)
	}
	if sound && p.Status != state.Passed && p.Status != state.Stale && p.SpecSHA != "" && p.SpecSHA != this.SHA256 {
		st.Notes = append(st.Notes, "its spec changed since")
	}
	if p.ReportMissing {
		st.Notes = append(st.Notes, "the builder left no report")
	}
	if p.Note != "" {
		st.Notes = append(st.Notes, p.Note)
	}
	if o := p.Outage; o != nil && !o.Until.IsZero() {
		st.Waits = o
		st.Notes = append(st.Notes, fmt.Sprintf("waiting since %s UTC after its last call (%s); "+
			"the next attempt is at %s UTC, or when abl phase runs after that",
			o.Since.UTC().Format(time.TimeOnly), o.Class, o.Until.UTC().Format(time.DateTime)))
	}
	if !sound {
		st.Status = unsound
	}
	for _, problem := range problems {
		if problem.Phase == n && problem.Fatal {
			st.Notes = append(st.Notes, problem.String())
		}
	}
	return st
}

// text lays out the standings for the output of a command.
func (all standings) text(in *cli.Input, now time.Time) string {
	if len(all.Phases) == 0 {
		return in.Lines("no specs yet: write .abl/specs/phase1.md")
	}
	t := view.Table{Header: strings.Fields("PHASE STATUS ITERATION CONTRACTS TOKENS USD TITLE"), Flex: 6}
	for _, s := range all.Phases {
		iteration, tokens, usd := "-", "-", "-"
		if s.Tokens != nil {
			tokens, usd = s.Tokens.String(), s.Cost.String()
		}
		if s.Iteration > 0 {
			iteration = fmt.Sprint(s.Iteration)
		}
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(s.Phase), s.shown(), iteration, strconv.Itoa(s.Contracts), tokens, usd, wording.OneLine(s.Title),
		})
	}
	var below []string
	say := func(format string, args ...any) { below = append(below, fmt.Sprintf(format, args...)) }
	if all.Working && !slices.ContainsFunc(all.Phases, func(s phaseStatus) bool { return s.Now != nil }) {
		say("abl is running here, between two phases")
	}
	for _, s := range all.Phases {
		if s.Now != nil {
			say("phase %d: %s", s.Phase, wording.OneLine(s.describe(now)))
		}
		for _, f := range s.Failed {
			say("phase %d fails: %s", s.Phase, wording.OneLine(f))
		}
		for _, note := range s.Notes {
			say("phase %d: %s", s.Phase, wording.OneLine(note))
		}
	}
	for _, p := range all.Problems {
		say("specs: %s", wording.OneLine(p))
	}
	say("next: %s", all.next)
	return in.Table(t) + in.Lines(below...)
}
