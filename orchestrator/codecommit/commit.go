package codecommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/roles/model"
)

// Limits are how long a run goes on.
type Limits struct {
	Repairs int  // how often the model is asked again
	Abort   bool // on an answer that cannot be used, rather than ask again
	DryRun  bool // look at the first answer, and change nothing
}

// Next is the prompt that follows on what came so far; there is none when the run is
// over.
func Next(p Profile, in Inputs, l Limits, history []Round) (prompt string, more bool) {
	if len(history) == 0 {
		return p.First(in), true
	}
	last := history[len(history)-1].Outcome
	if last == Passed || len(history) > l.Repairs || l.DryRun || l.Abort && last == Unusable {
		return "", false
	}
	return p.Repair(in, history), true
}

// Commit asks for the change, applies it and builds, and asks for repairs until
// the build passes. The error is what stopped it on the way; a build that stays
// red is none.
func (r *Run) Commit(ctx context.Context) (Result, error) {
	r.begin("committing-code")
	for {
		prompt, more := Next(r.Profile, r.Inputs, r.Limits, r.history)
		if !more {
			last := r.result.Attempts[len(r.history)-1]
			r.result.Why = last.Why
			return r.end(last.Outcome, nil)
		}
		if err := r.attempt(ctx, prompt); err != nil {
			return r.end(Failed, err)
		}
	}
}

// attempt is one call, and the build after it.
func (r *Run) attempt(ctx context.Context, prompt string) error {
	n := len(r.history)
	f := r.Profile.files(n)
	answer, at, err := r.ask(ctx, r.Profile.step(n), prompt, f)
	if err != nil {
		return err
	}
	round, wrong, err := r.understand(ctx, answer)
	if err != nil {
		return err
	}
	if at.Says = brief(r.Clean(round.says)); at.Says != "" {
		r.Show.Say(r.Model.Name() + " changes nothing, and says: " + at.Says)
	}
	switch {
	case wrong != nil:
		at.Outcome, at.Why = Unusable, wrong.Error()
		round.Edits = nil
		round.Output = "The answer could not be used, and nothing of it was applied:\n" + wrong.Error() + "\n"
		r.Show.Say("the answer cannot be used, so nothing was changed: " + wrong.Error())
	case r.DryRun:
		at.Outcome = Planned
		r.Show.Plan(round.Edits)
	default:
		if round.Output, err = r.build(ctx, round.Edits, at); err != nil && round.Output != "" {
			err = errors.Join(err, r.Logs.Put(round.Output, f.build...))
		}
		if err != nil {
			return err
		}
	}
	at.Files, round.Outcome = changes(round.Edits), at.Outcome
	r.history = append(r.history, round)
	if r.DryRun {
		return nil
	}
	return r.Logs.Put(round.Output, f.build...)
}

// understand reads an answer. wrong is what the model did wrong.
func (r *Run) understand(ctx context.Context, a model.Answer) (round Round, wrong, err error) {
	if a.Finish == model.Cut {
		why := cmp.Or(a.Reason, "no reason given")
		return round, fmt.Errorf("the answer was cut off (%s), so the rest of it is unknown: answer more briefly, with fewer or smaller files", why), nil
	}
	if r.Holds != nil && r.Holds(a.Text) {
		return round, errors.New("it holds the key of a provider, so nothing of it was taken"), nil
	}
	var edits []Edit
	if r.Profile.Name == V1 {
		var v1 Answer
		v1, wrong = ParseAnswerV1(a.Text)
		if err := r.pass(v1.Said); err != nil {
			return round, nil, err
		}
		round.Thoughts, round.says, edits = v1.Thoughts, strings.Join(v1.Calm, "\n"), v1.Edits
	} else if edits, wrong = ParseAnswer(a.Text); Empty(wrong) {
		round.says = a.Text
	}
	if wrong != nil {
		return round, wrong, nil
	}
	round.Edits, err = r.Guard.Check(ctx, edits)
	var refused Refused
	if errors.As(err, &refused) {
		return round, err, nil
	}
	return round, nil, err
}

// brief is the beginning of a model's words.
func brief(text string) string {
	const most = 2000
	if text = strings.TrimSpace(text); len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}

// pass gives a model's words to the person, and keeps them.
func (r *Run) pass(words []string) error {
	for _, w := range words {
		r.Show.Said(w)
		if r.DryRun {
			continue
		}
		if err := hostfs.Append(filepath.Join(r.Root, r.Profile.UserOutput), []byte(r.Clean(w)), logPerm); err != nil {
			return err
		}
	}
	return nil
}

// build makes the edits and builds.
func (r *Run) build(ctx context.Context, edits []Edit, at *Attempt) (output string, err error) {
	at.Files = changes(edits)
	if len(edits) > 0 {
		if err := Apply(r.Root, r.Profile.Stage, edits); err != nil {
			return "", err
		}
	}
	r.Show.Say(Counted(len(edits), "file", "files") + " changed; building")
	stop := r.Show.Wait("the build")
	began := time.Now()
	built, err := r.Builder.Build(ctx)
	stop()
	at.BuildMS = time.Since(began).Milliseconds()
	r.result.BuildMS += at.BuildMS
	at.Notes = built.Notes
	for _, note := range built.Notes {
		r.Show.Say(note)
	}
	for name, text := range built.Papers {
		err = errors.Join(err, r.Logs.Put(text, r.Profile.numbered(len(r.history))+name))
	}
	if err != nil {
		return built.Text(), err
	}
	at.Exit, at.Outcome = &built.Code, Passed
	if !built.Green() {
		at.Outcome, at.Why = Red, fmt.Sprintf("build.sh ended with exit code %d", built.Code)
		if built.Note != "" {
			at.Why = built.Note
		}
		r.Show.Say("the build is red: " + at.Why)
	}
	return r.Clean(built.Text()), nil
}

// Counted is a number of things in words.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
