package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
)

// sweepUnlessCommitted sweeps the role's workspace after a call that no commit
// follows at once: it was stopped, or the run is about to stop.
func (t turn) sweepUnlessCommitted(ctx context.Context, o roles.Outcome) error {
	if o.Class != outcome.Interrupted && ctx.Err() == nil {
		return nil
	}
	if err := t.repo().Sweep(context.WithoutCancel(ctx), t.keepFound); err != nil {
		return fmt.Errorf("cannot sweep the %s's workspace: %w", t.role.Name, err)
	}
	return nil
}

// keepFound keeps what a sweep found with the call that left it, and shows it.
func (t turn) keepFound(f state.Found) error {
	said := inSentences(f) // which are made safe by themselves
	if err := t.Safe.Clean(&f); err != nil {
		return err
	}
	if err := t.record().KeepFound(f); err != nil {
		return err
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
