package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/call"
)

// turn is one call of a role, with the checks before it and the steps after it.
type turn struct {
	*Loop
	role roles.Role
	p    *state.Phase // may be changed for later steps
	key  string       // the call's id
}

func (l *Loop) turn(role roles.Role, p *state.Phase) turn {
	return turn{l, role, p, roles.Key(l.Number, role, p.Step, p.Attempt)}
}

func (t turn) record() roles.Record { return roles.Record{Dir: t.Project.Call(t.key)} }

func (t turn) emit(e state.Event) { t.Loop.emit(t.p, e) }

// note reports something about the turn to the user.
func (t turn) note(text string) {
	t.emit(state.Event{Kind: state.Note, Role: t.role.Name, Text: text})
}

// mostHolders is how often abl tries to begin a call whose network is ended from outside.
const mostHolders = 3

// ErrChanged means that the user edited the source while its phase runs.
var ErrChanged = errors.New("the source was changed by hand")

// checkSource checks, before a call that is about a commit, that the source equals the commit. It
// accepts commits that the user made on top, and reports them.
func (t turn) checkSource(ctx context.Context) error {
	if err := t.afterBoot(ctx); err != nil {
		return err
	}
	if err := t.unchanged(ctx); err != nil {
		return err
	}
	tip, err := t.Src.Tip()
	if err == nil && tip != t.p.SrcCommit {
		t.say(t.p, "commit "+tip+" in the source was not made by abl; the phase includes it")
		t.p.SrcCommit = tip
	}
	return err
}

// checkForEdits checks before a Builder's call that the source has no edits by the user, which
// would be committed as the Builder's. Files left by an interrupted call of the Builder are
// accepted. Files from before the first commit get their own commit.
func (t turn) checkForEdits(ctx context.Context) error {
	if err := t.afterBoot(ctx); err != nil {
		return err
	}
	known, left, err := leftIn(ctx, t.Project, t.Src)
	if err != nil || left {
		return err
	}
	tip, err := t.Src.Tip()
	switch {
	case err != nil:
		return err
	case tip == "" && !known:
		return t.commitFirst(ctx)
	case t.p.Iteration > 1 && t.p.Attempt == 1:
		return t.checkSource(ctx)
	}
	return t.unchanged(ctx)
}

// leftFile contains the key of the files that an interrupted call of the Builder left.
const leftFile = "left.json"

// worker is a workspace that returns a hash of its content.
type worker interface {
	WorkKey(ctx context.Context) (string, error)
}

// KeepLeft records that an interrupted call left the current content of the source.
func KeepLeft(ctx context.Context, p state.Project, src worker) error {
	key, err := src.WorkKey(ctx)
	if err == nil {
		err = roles.Record{Dir: p.Logs()}.Write(leftFile, key)
	}
	return err
}

// IsLeft reports whether the source has the content that an interrupted call of the Builder left.
func IsLeft(ctx context.Context, p state.Project, src worker) (bool, error) {
	_, is, err := leftIn(ctx, p, src)
	return is, err
}

// leftIn reports whether an interrupted call is on record, and whether the source has the content that
// it left.
func leftIn(ctx context.Context, p state.Project, src worker) (known, is bool, err error) {
	left, known, err := roles.Read[string](roles.Record{Dir: p.Logs()}, leftFile)
	if err != nil || !known {
		return false, false, err
	}
	now, err := src.WorkKey(ctx)
	return true, err == nil && now == left, err
}

// commitFirst commits the files that were in the source before abl.
func (t turn) commitFirst(ctx context.Context) error {
	changed, err := t.Src.Differs(ctx, "")
	if err != nil || len(changed) == 0 {
		return err
	}
	return t.takeMine(ctx)
}

// unchanged fails if the source has uncommitted edits. With TakeMine it commits them.
func (t turn) unchanged(ctx context.Context) error {
	changed, err := t.Src.Differs(ctx, "")
	if err == nil && len(changed) > 0 && t.TakeMine {
		if err = t.takeMine(ctx); err == nil {
			changed, err = t.Src.Differs(ctx, "")
		}
	}
	if err != nil || len(changed) == 0 {
		return err
	}
	verb := "differ"
	if len(changed) == 1 {
		verb = "differs"
	}
	named := make([]string, len(changed))
	for i, path := range changed {
		named[i] = fmt.Sprintf("%.200q", path)
	}
	return fmt.Errorf("%w: %s %s from the last commit", ErrChanged, wording.Few(named, maxShown, ", "), verb)
}

// takeMine commits the user's edits separately. There may be edits several times before the same
// call, so the key of the commit contains its parent.
func (t turn) takeMine(ctx context.Context) error {
	tip, err := t.Src.Tip()
	if err != nil {
		return err
	}
	on := tip[:min(len(tip), 7)]
	subject := fmt.Sprintf("phase%d/person/step-%d", t.Number, t.p.Step)
	if on != "" {
		subject += " on " + on
	}
	c, err := t.Src.Snapshot(ctx, subject, t.key+"-person-"+on, false, func(state.Found) error { return nil })
	if err != nil {
		return fmt.Errorf("cannot commit your changes: %w", err)
	}
	t.p.SrcCommit = c.Hash
	t.emit(state.Event{
		Kind:    state.Commit,
		Hash:    c.Hash,
		Subject: subject,
		Text:    "your changes, " + wording.Count(c.Changed, "file") + " changed",
	})
	return nil
}

// admit checks whether a call may begin. It returns true without a check if the call has begun.
func (t turn) admit() (begun bool, err error) {
	_, begun, err = t.record().Intent()
	if begun = begun || t.record().Started(); err != nil || begun { // Started also covers a lost intent
		return begun, err
	}
	if err := t.specDrift(); err != nil || t.p.Recheck { // a replay costs nothing
		return false, err
	}
	return false, t.Before(t.key)
}

// call runs one call and adds it to the ledger.
func (t turn) call(ctx context.Context, up app.Up) (o roles.Outcome, err error) {
	failpoint.Here("call.before")
	for range mostHolders {
		var j call.Job
		if j, err = t.Jobs.Job(ctx, t.role, *t.p, up); err != nil {
			return o, err
		}
		if err := t.seal(); err != nil {
			return o, err
		}
		if o, err = t.Calls.Run(ctx, j); !errors.Is(err, sandbox.ErrKilled) || ctx.Err() != nil {
			break
		}
		t.note(err.Error() + "; abl starts another")
	}
	if err == nil {
		err = t.CheckLock()
	}
	if err != nil {
		return o, err
	}
	failpoint.Here("ledger.before")
	if err := t.Ledger.Append(Rows(t.Number, t.p.Step, o)); err != nil {
		return o, fmt.Errorf("cannot add call %s to the ledger (its outcome is saved): %w", o.Key, err)
	}
	failpoint.Here("ledger.after")
	if err := t.unmoved(); err != nil {
		return o, err
	}
	return o, t.sweepUnlessCommitted(ctx, o)
}

// commit commits a workspace under the call's key. A failed call without changes gets no commit.
func (t turn) commit(ctx context.Context) (Commit, error) {
	failpoint.Here("commit.before")
	if err := t.CheckLock(); err != nil {
		return Commit{}, err
	}
	subject := roles.Subject(t.Number, t.role, t.p.Step, t.p.Attempt)
	failed := t.p.Class != "" && t.p.Class != string(outcome.Done)
	c, err := t.repo().Snapshot(ctx, subject, t.key, failed, t.keepFound)
	if err != nil {
		return c, fmt.Errorf("cannot commit the %s's work: %w", t.role.Name, err)
	}
	failpoint.Here("commit.after")
	if c.Changed > 0 || !failed {
		t.emit(state.Event{
			Kind:    state.Commit,
			Role:    t.role.Name,
			Hash:    c.Hash,
			Subject: subject,
			Text:    wording.Count(c.Changed, "file") + " changed",
		})
	}
	for _, s := range c.Skipped {
		t.note("not committed: " + s)
	}
	return c, nil
}

// Abandoned returns phase n with the next attempt of a call on a lost machine, and the ledger's row
// of the lost call. The row has no usage: its cost is unknown. A phase without a current call is
// returned unchanged.
func Abandoned(n int, p state.Phase) (state.Phase, []ledger.Row) {
	if p.Status != state.Building && p.Status != state.Verifying || p.Recheck {
		return p, nil
	}
	role := map[state.Status]roles.Role{state.Building: roles.Builder, state.Verifying: roles.Verifier}[p.Status]
	rows := Rows(n, p.Step, roles.Outcome{
		Key:   roles.Key(n, role, p.Step, p.Attempt),
		Role:  role.Name,
		Class: outcome.Lost,
		Ended: time.Now().UTC(),
	})
	rows[0].DurationMS = nil
	p = again(p, p.Status)
	p.Call = roles.Key(n, role, p.Step, p.Attempt)
	return p, rows
}

// Rows returns the ledger rows of one ended call: one per model, or one with an unknown count.
func Rows(phase, step int, o roles.Outcome) []ledger.Row {
	base := ledger.Row{
		Timestamp:  ledger.Stamp(o.Ended),
		Phase:      strconv.Itoa(phase),
		Step:       strconv.Itoa(step),
		Role:       o.Role,
		Model:      o.Model,
		SessionID:  o.Session,
		Source:     ledger.Nobody,
		CallID:     o.Key,
		Agent:      o.Agent,
		DurationMS: &o.Duration,
		Outcome:    string(o.Class),
	}
	if len(o.Usage) == 0 {
		return []ledger.Row{base}
	}
	all := make([]ledger.Row, 0, len(o.Usage))
	for _, u := range o.Usage {
		r := base
		r.Model = cmp.Or(u.Model, o.Model)
		switch {
		case u.Part || u.Total == nil && u.Input == nil && u.Candidates == nil:
			r.Source = ledger.Nobody // the usage is unknown
		case o.Source == roles.CountedByGate:
			r.Source = ledger.Gateway
		default:
			r.Source = ledger.CLI
		}
		r.Count = u.Count
		switch {
		case u.Plan:
			r.CostUSD = ledger.Subscription
		case u.Cost != nil:
			r.CostUSD = u.Cost.String()
		case u.Part: // an unanswered request has no tokens, and may cost something
			r.CostUSD = ledger.Unknown
		default:
			r.CostUSD = ledger.Cost(r)
		}
		all = append(all, r)
	}
	return all
}
