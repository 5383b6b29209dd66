package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"abl/internal/ledger"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/roles"
)

// turn is a call of a role at the place where a phase is: what is looked at
// before it, the call, and what is kept after it.
type turn struct {
	*Loop
	role roles.Role
	p    *state.Phase // it may note here what later steps need
	key  string       // the call's id
}

func (l *Loop) turn(role roles.Role, p *state.Phase) turn {
	return turn{l, role, p, roles.Key(l.Number, role, p.Step, p.Attempt)}
}

func (t turn) record() roles.Record { return roles.Record{Dir: t.Project.Call(t.key)} }

func (t turn) emit(e state.Event) { t.Loop.emit(t.p, e) }

// note tells the person something about the turn.
func (t turn) note(text string) {
	t.emit(state.Event{Kind: state.Note, Role: t.role.Name, Text: text})
}

// mostHolders is how often a call that could not begin, since somebody ended what
// holds its network, is begun with another.
const mostHolders = 3

// ErrChanged means that a person changed the source while its phase runs.
var ErrChanged = errors.New("the source was changed by hand")

// settled sees to it that what a call of the role is about is what was committed.
// Commits that a person made on top are taken with the rest, and named; what is not
// committed is the person's to decide about.
func (t turn) settled(ctx context.Context) error {
	if err := t.afterBoot(ctx); err != nil {
		return err
	}
	changed, err := t.Src.Differs(ctx, "")
	if err == nil && len(changed) > 0 && t.TakeMine {
		if err = t.takeMine(ctx); err == nil {
			changed, err = t.Src.Differs(ctx, "")
		}
	}
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		more := ""
		if n := len(changed) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		return fmt.Errorf("%w: %q is not as it was committed%s", ErrChanged, changed[0], more)
	}
	tip, err := t.Src.Tip()
	if err == nil && tip != t.p.SrcCommit {
		t.say(t.p, "commit "+tip+" in the source is not abl's; it counts with the rest")
		t.p.SrcCommit = tip
	}
	return err
}

// takeMine commits what a person changed by hand, apart from what agents did. They
// may do so again before the same call, so its key names the commit that it stands on.
func (t turn) takeMine(ctx context.Context) error {
	tip, err := t.Src.Tip()
	if err != nil {
		return err
	}
	on := tip[:min(len(tip), 7)]
	subject := fmt.Sprintf("phase%d/person/step-%d on %s", t.Number, t.p.Step, on)
	c, err := t.Src.Snapshot(ctx, subject, t.key+"-person-"+on, func(state.Found) error { return nil })
	if err != nil {
		return fmt.Errorf("cannot commit your changes: %w", err)
	}
	t.p.SrcCommit = c.Hash
	t.emit(state.Event{Kind: state.Commit, Hash: c.Hash, Subject: subject, Text: "your changes, " + wording.Count(c.Changed, "file") + " changed"})
	return nil
}

// admit asks whether a call may begin, and says whether it has begun already:
// an earlier abl was told then that it may.
func (t turn) admit() (begun bool, err error) {
	_, begun, err = t.record().Intent()
	if begun = begun || t.record().Started(); err != nil || begun { // of a lost intent, Started is left
		return begun, err
	}
	if err := t.specDrift(); err != nil || t.p.Recheck { // what calls nobody costs nothing
		return false, err
	}
	return false, t.Before(t.key)
}

// call runs one call and enters it in the ledger.
func (t turn) call(ctx context.Context, up roles.Up) (o roles.Outcome, err error) {
	failpoint.Here("call.before")
	for range mostHolders {
		var j roles.Job
		if j, err = t.Jobs.Job(ctx, t.role, *t.p, up); err != nil {
			return o, err
		}
		if err := t.seal(); err != nil {
			return o, err
		}
		if o, err = t.Calls.Run(ctx, j); !errors.Is(err, roles.ErrKilled) || ctx.Err() != nil {
			break
		}
		t.note(err.Error() + "; another is made")
	}
	if err == nil {
		err = t.Alone()
	}
	if err != nil {
		return o, err
	}
	failpoint.Here("ledger.before")
	if err := t.Ledger.Append(Rows(t.Number, t.p.Step, o)); err != nil {
		return o, fmt.Errorf("cannot enter call %s in the ledger (its outcome is kept): %w", o.Key, err)
	}
	failpoint.Here("ledger.after")
	if err := t.unmoved(); err != nil {
		return o, err
	}
	return o, t.sweepUnlessCommitted(ctx, o)
}

// commit takes a snapshot of a workspace under the call's key.
func (t turn) commit(ctx context.Context) (Commit, error) {
	failpoint.Here("commit.before")
	if err := t.Alone(); err != nil {
		return Commit{}, err
	}
	subject := roles.Subject(t.Number, t.role, t.p.Step, t.p.Attempt)
	c, err := t.repo().Snapshot(ctx, subject, t.key, t.keepFound)
	if err != nil {
		return c, fmt.Errorf("cannot commit the %s's work: %w", t.role.Name, err)
	}
	failpoint.Here("commit.after")
	t.emit(state.Event{Kind: state.Commit, Role: t.role.Name, Hash: c.Hash, Subject: subject, Text: wording.Count(c.Changed, "file") + " changed"})
	for _, s := range c.Skipped {
		t.note("not committed: " + s)
	}
	return c, nil
}

// Rows are the ledger rows of one ended call: one a model, and one that says
// that nobody counted when there is no usage.
func Rows(phase, step int, o roles.Outcome) []ledger.Row {
	base := ledger.Row{
		Timestamp: ledger.Stamp(o.Ended), Phase: strconv.Itoa(phase), Step: strconv.Itoa(step), Role: o.Role, Model: o.Model,
		SessionID: o.Session, Source: ledger.Nobody, CallID: o.Key, Agent: o.Agent, DurationMS: &o.Duration, Outcome: string(o.Class),
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
			r.Source = ledger.Nobody // used, and not told by whom it passed
		case o.Source == roles.CountedByGate:
			r.Source = ledger.Gateway
		default:
			r.Source = ledger.CLI
		}
		r.Count = u.Count
		switch {
		case u.Cost != nil:
			r.CostUSD = u.Cost.String()
		case u.Part: // a request that was never answered has no token, and may cost something
			r.CostUSD = ledger.Unknown
		default:
			r.CostUSD = ledger.Cost(r)
		}
		all = append(all, r)
	}
	return all
}
