package codecommit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/treeedit"
	"abl/orchestrator/codecommit/fence"
	"abl/orchestrator/codecommit/guard"
	"abl/roles/model"
)

// Commit asks for the change, applies it and builds, and asks for repairs until
// the build passes. The error is what stopped it on the way; a build that stays
// red is none.
func (r *Run) Commit(ctx context.Context) (Result, error) {
	r.begin("committing-code")
	prompt := r.Profile.First(r.Inputs)
	for n := 0; ; n++ {
		done, err := r.attempt(ctx, n, prompt)
		if err != nil {
			return r.end(Failed, err)
		}
		last := r.result.Attempts[n]
		if done || n == r.Repairs || r.DryRun || r.Abort && last.Outcome == Unusable {
			r.result.Why = last.Why
			return r.end(last.Outcome, nil)
		}
		prompt = r.Profile.Repair(r.Inputs, r.history)
	}
}

// attempt is one call, and the build after it.
func (r *Run) attempt(ctx context.Context, n int, prompt string) (done bool, err error) {
	own, numbered := r.Profile.files(n)
	answer, at, err := r.ask(ctx, r.Profile.step(n), prompt, own, numbered)
	if err != nil {
		return false, err
	}
	round, wrong, err := r.understand(answer)
	if err != nil {
		return false, err
	}
	at.Files = changes(round.Edits)
	if at.Says = brief(r.Clean(round.says)); at.Says != "" {
		r.Show.Say(r.Model.Name() + " changes nothing, and says: " + at.Says)
	}
	if wrong != nil {
		at.Outcome, at.Why = Unusable, wrong.Error()
		round.Edits, at.Files = nil, nil
		round.Output = "The answer could not be used, and nothing of it was applied:\n" + wrong.Error() + "\n"
		r.Show.Say("the answer cannot be used, so nothing was changed: " + wrong.Error())
	} else if done, err = r.apply(ctx, round.Edits, at, &round.Output); err != nil {
		return false, err
	}
	if r.DryRun {
		return true, nil
	}
	r.history = append(r.history, round)
	return done, r.Logs.Put(own.build, numbered.build, round.Output)
}

// understand reads an answer. wrong is what the model did wrong.
func (r *Run) understand(a model.Answer) (round Round, wrong, err error) {
	if a.Finish == model.Cut {
		why := a.Reason
		if why == "" {
			why = "no reason given"
		}
		return round, fmt.Errorf("the answer was cut off (%s), so the rest of it is unknown: answer more briefly, with fewer or smaller files", why), nil
	}
	if r.Holds != nil && r.Holds(a.Text) {
		return round, errors.New("it holds the key of a provider, so nothing of it was taken"), nil
	}
	var edits []fence.Edit
	if r.Profile.Name == V1 {
		var v1 fence.Answer
		v1, wrong = fence.ParseV1(a.Text)
		if err := r.pass(v1.Said); err != nil {
			return round, nil, err
		}
		round.Thoughts, round.says, edits = v1.Thoughts, strings.Join(v1.Calm, "\n"), v1.Edits
	} else if edits, wrong = fence.Parse(a.Text); fence.Is(wrong, fence.NoOperations) {
		round.says = a.Text
	}
	if wrong != nil {
		return round, wrong, nil
	}
	round.Edits, err = r.Guard.Check(edits)
	var refused guard.Refused
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

// apply makes the edits and builds.
func (r *Run) apply(ctx context.Context, edits []fence.Edit, at *Attempt, output *string) (green bool, err error) {
	if r.DryRun {
		at.Outcome = Planned
		r.Show.Plan(edits)
		return false, nil
	}
	if err := treeedit.Apply(r.Root, r.Profile.Stage, toTree(edits)); err != nil {
		return false, err
	}
	r.Show.Say(counted(len(edits)) + " changed; building")
	stop := r.Show.Wait("the build")
	began := r.Now()
	built, err := r.Builder.Build(ctx)
	stop()
	at.BuildMS = r.Now().Sub(began).Milliseconds()
	r.result.BuildMS += at.BuildMS
	at.Notes = built.Notes
	for _, note := range built.Notes {
		r.Show.Say(note)
	}
	err = errors.Join(err, r.keep(built.Papers))
	if err != nil {
		own, numbered := r.Profile.files(len(r.result.Attempts) - 1)
		return false, errors.Join(err, r.Logs.Put(own.build, numbered.build, built.Text()))
	}
	*output, at.Exit, at.Outcome = r.Clean(built.Text()), &built.Code, Passed
	if !built.Green() {
		at.Outcome, at.Why = Red, fmt.Sprintf("build.sh ended with exit code %d", built.Code)
		if built.Note != "" {
			at.Why = built.Note
		}
		r.Show.Say("the build is red: " + at.Why)
	}
	return built.Green(), nil
}

// keep puts what came with a build into the log folder, beside its log.
func (r *Run) keep(papers []Paper) (err error) {
	for _, p := range papers {
		err = errors.Join(err, r.Logs.Put(r.Profile.numbered(len(r.result.Attempts))+p.Name, "", p.Text))
	}
	return err
}

func counted(files int) string {
	if files == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", files)
}

func toTree(edits []fence.Edit) []treeedit.Edit {
	all := make([]treeedit.Edit, 0, len(edits))
	for _, e := range edits {
		all = append(all, treeedit.Edit{Path: e.Path, Content: e.Content, Delete: e.Delete})
	}
	return all
}
