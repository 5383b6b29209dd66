package orchestrator

import (
	"errors"
	"fmt"
	"strings"

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
	return rec.KeepHistory(now.History)
}

// unmoved looks at the repository after the call, which is kept whatever comes
// of it: what a person did meanwhile is theirs to decide about, before anything
// is committed on top.
func (t turn) unmoved() error {
	key := t.key
	now, err := t.repo().Seal()
	if err != nil {
		return fmt.Errorf("call %s is kept, and nothing is committed: %w", key, err)
	}
	t.showSteering(now.Steering, "while the call ran")
	rec := roles.Record{Dir: t.Project.Call(key)}
	was, ok, err := rec.History()
	if err != nil || !ok {
		return err
	}
	if moved := state.Changed(was, now.History); len(moved) > 0 {
		return fmt.Errorf("%w: in %s, %s; call %s is kept and nothing is committed: put it back, or delete %s to go on with the history as it is, and run the phase again",
			ErrMoved, t.Project.Rel(t.role.Workspace(t.Project)), inWords(moved, was, now.History), key, t.Project.Rel(rec.Dir)+"/"+roles.HistoryFile)
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
		t.emit(state.Event{Kind: state.Note, Role: t.role.Name, Text: fmt.Sprintf(
			"in the .git of %s this was changed %s: %s", t.Project.Rel(t.role.Workspace(t.Project)), when, strings.Join(changed, ", "))})
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
