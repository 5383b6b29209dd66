package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
)

// ErrMoved means that a history changed while a call ran, which no role can cause.
var ErrMoved = errors.New("the history was changed while a call ran")

// seal checks the role's repository before its call. It reports changes of git's configuration since
// the last check. It records the repository's history, unless the call is already running.
func (t turn) seal() error {
	now, err := t.repo().Seal()
	if err != nil {
		return err
	}
	t.showSteering(now.Steering, "since the call before")
	rec := t.record()
	if rec.Started() {
		return nil
	}
	return rec.Write(roles.HistoryFile, now.History)
}

// unmoved checks the repository after the call. It fails if the history changed, before abl commits
// on top: the user has to decide. The call's record is kept.
func (t turn) unmoved() error {
	now, err := t.repo().Seal()
	if err != nil {
		return fmt.Errorf("call %s is saved, and abl commits nothing: %w", t.key, err)
	}
	t.showSteering(now.Steering, "while the call ran")
	rec := t.record()
	was, ok, err := roles.Read[map[string]string](rec, roles.HistoryFile) // the user may have deleted it to continue
	if err != nil || !ok {
		return err
	}
	if moved := state.Changed(was, now.History); len(moved) > 0 {
		return fmt.Errorf("%w: in %s, %s; call %s is saved, and abl commits nothing: undo the change, "+
			"or delete %s to accept it",
			ErrMoved, t.Project.Rel(t.role.Workspace(t.Project)), movedText(moved, was,
				now.History), t.key, t.Project.Rel(rec.Dir)+"/"+roles.HistoryFile)
	}
	return nil
}

// movedText describes the first of the refs that changed.
func movedText(moved []string, was, is map[string]string) string {
	name := moved[0]
	value := func(m map[string]string) string {
		if v := m[name]; v != "" {
			return fmt.Sprintf("%.60q", v)
		}
		return "nothing"
	}
	text := fmt.Sprintf("%.100q pointed to %s and now points to %s", name, value(was), value(is))
	if len(moved) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(moved)-1)
	}
	return text
}

// showSteering reports changes of git's config or hooks since the last check. The current state is
// saved with the next state.
func (t turn) showSteering(now map[string]string, when string) {
	seen, known := t.File.Git[t.role.Name]
	changed := state.Changed(seen, now)
	if known && len(changed) > 0 {
		where := t.Project.Rel(t.role.Workspace(t.Project))
		t.note(fmt.Sprintf("in the .git of %s these changed %s: %s", where, when, strings.Join(changed, ", ")))
	}
	if t.File.Git == nil {
		t.File.Git = map[string]map[string]string{}
	}
	t.File.Git[t.role.Name] = now
}

// repo returns the role's repository, which no role can write.
func (t turn) repo() Repo {
	if t.role.App {
		return t.Tests
	}
	return t.Src
}

// sweepUnlessCommitted sweeps the role's workspace after a call that is not followed by a commit,
// because the call or the run stops.
func (t turn) sweepUnlessCommitted(ctx context.Context, o roles.Outcome) error {
	if o.Class != outcome.Interrupted && ctx.Err() == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err := t.repo().Sweep(ctx, t.keepFound); err != nil {
		return fmt.Errorf("cannot sweep the %s's workspace: %w", t.role.Name, err)
	}
	if t.role.App {
		return nil
	}
	return KeepLeft(ctx, t.Project, t.Src)
}

// keepFound records the result of a sweep with its call, and reports it.
func (t turn) keepFound(f state.Found) error {
	texts := foundTexts(f) // before Clean, because events are cleaned when they are shown
	if err := t.Safe.Clean(&f); err != nil {
		return err
	}
	if err := t.record().Write(roles.FoundFile, f); err != nil {
		return err
	}
	if !t.role.App {
		if err := keepAbsent(t.Project, f.Absent); err != nil {
			return err
		}
	}
	for _, text := range texts {
		t.emit(state.Event{Kind: state.Note, Role: t.role.Name, Call: t.key, Text: text})
	}
	return nil
}

// maxShown is the maximum number of files that are not executable in a note. The record has the rest.
const maxShown = 10

// foundTexts describes the result of a sweep. Agents chose the paths in it.
func foundTexts(f state.Found) (all []string) {
	if len(f.Cleared) > 0 {
		all = append(all, "found in its workspace and removed: "+listedPaths(f.Cleared))
	}
	if len(f.Control) > 0 {
		all = append(all, "new or changed in its workspace (check these files before you run your own tools there): "+listedPaths(f.Control))
	}
	return all
}

// listedPaths lists files for the user.
func listedPaths(all []state.Thing) string {
	var words []string
	runs := 0 // files that can run come first
	for runs < len(all) && all[runs].Runs {
		runs++
	}
	for _, t := range all[:min(len(all), runs+maxShown)] {
		words = append(words, fmt.Sprintf("%.200q (%s)", t.Path, t.What))
	}
	if more := len(all) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more in %s", more, roles.FoundFile))
	}
	return strings.Join(words, ", ")
}
