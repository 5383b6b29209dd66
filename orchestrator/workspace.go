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

// ErrMoved means that a history moved while a call ran, which no role can do.
var ErrMoved = errors.New("the history was changed while a call ran")

// seal looks at the role's repository before its call: what steers git there is
// compared with what was seen last and shown when it differs, and where the
// history stands is noted with the call, unless the call runs already.
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

// unmoved looks at the repository after the call, which is kept whatever comes
// of it: what a person did meanwhile is theirs to decide about, before anything
// is committed on top.
func (t turn) unmoved() error {
	now, err := t.repo().Seal()
	if err != nil {
		return fmt.Errorf("call %s is kept, and nothing is committed: %w", t.key, err)
	}
	t.showSteering(now.Steering, "while the call ran")
	rec := t.record()
	was, ok, err := roles.Read[map[string]string](rec, roles.HistoryFile) // or a person who has seen it move took the note away
	if err != nil || !ok {
		return err
	}
	if moved := state.Changed(was, now.History); len(moved) > 0 {
		return fmt.Errorf("%w: in %s, %s; call %s is kept and nothing is committed: put it back, or delete %s to go on with it as it is",
			ErrMoved, t.Project.Rel(t.role.Workspace(t.Project)), inWords(moved, was, now.History), t.key, t.Project.Rel(rec.Dir)+"/"+roles.HistoryFile)
	}
	return nil
}

// inWords says what the first of the refs that moved was and is.
func inWords(moved []string, was, is map[string]string) string {
	name := moved[0]
	value := func(m map[string]string) string {
		if v := m[name]; v != "" {
			return fmt.Sprintf("%.60q", v)
		}
		return "nothing"
	}
	text := fmt.Sprintf("%.100q named %s and names %s", name, value(was), value(is))
	if len(moved) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(moved)-1)
	}
	return text
}

// showSteering tells a person when config or hooks are not as they were seen
// last, and remembers them as they are now with the next state that is saved.
func (t turn) showSteering(now map[string]string, when string) {
	seen, known := t.File.Git[t.role.Name]
	changed := state.Changed(seen, now)
	if known && len(changed) > 0 {
		where := t.Project.Rel(t.role.Workspace(t.Project))
		t.note(fmt.Sprintf("in the .git of %s this was changed %s: %s", where, when, strings.Join(changed, ", ")))
	}
	if t.File.Git == nil {
		t.File.Git = map[string]map[string]string{}
	}
	t.File.Git[t.role.Name] = now
}

// repo is the role's repository, which no role can write.
func (t turn) repo() Repo {
	if t.role.App {
		return t.Tests
	}
	return t.Src
}

// sweepUnlessCommitted sweeps the role's workspace after a call that no commit
// follows at once: it was stopped, or the run is about to stop.
func (t turn) sweepUnlessCommitted(ctx context.Context, o roles.Outcome) error {
	if o.Class != outcome.Interrupted && ctx.Err() == nil {
		return nil
	}
	if err := t.repo().Sweep(context.WithoutCancel(ctx), t.keepFound); err != nil {
		return fmt.Errorf("cannot sweep the %s's workspace: %w", t.role.Name, err)
	}
	return t.noteLeft(context.WithoutCancel(ctx))
}

// keepFound keeps what a sweep found with the call that left it, and shows it.
func (t turn) keepFound(f state.Found) error {
	said := inSentences(f) // which are made safe by themselves
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
	for _, text := range said {
		t.emit(state.Event{Kind: state.Note, Role: t.role.Name, Call: t.key, Text: text})
	}
	return nil
}

// maxShown is how many things a note names that do not run; the record has the rest.
const maxShown = 10

// inSentences says for a person what a sweep found. The paths are an agent's.
func inSentences(f state.Found) (all []string) {
	if len(f.Cleared) > 0 {
		all = append(all, "found in its workspace and taken away: "+named(f.Cleared))
	}
	if len(f.Control) > 0 {
		all = append(all, "new or changed in its workspace, look at it before you use your own tools there: "+named(f.Control))
	}
	return all
}

// named lists things for a person.
func named(all []state.Thing) string {
	var words []string
	runs := 0 // these stand first
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
