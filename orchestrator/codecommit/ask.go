package codecommit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"abl/internal/ledger"
	"abl/roles/model"
)

func (r *Run) begin(workflow string) {
	r.result = Result{Workflow: workflow, Protocol: r.Profile.Name, Model: r.Model.Name(), Logs: r.Logs.Path, Attempts: []*Attempt{}, Files: []Change{}}
}

// end sums up, and leaves the sum in the log folder.
func (r *Run) end(outcome string, cause error) (Result, error) {
	res := &r.result
	res.Outcome = outcome
	if !r.DryRun {
		res.Files = changes(latest(r.history))
	}
	if cause != nil {
		res.Why = cause.Error()
	}
	res.Why = r.Clean(res.Why)
	for _, a := range res.Attempts {
		a.Why = r.Clean(a.Why)
	}
	data, err := json.MarshalIndent(res, "", "  ")
	if err == nil {
		err = r.Logs.Put(string(data)+"\n", "run.json")
	}
	if outcome == Failed || outcome == Red || outcome == Unusable {
		err = errors.Join(err, r.Logs.Put(res.Why+"\n", "final_error.txt"))
	}
	return *res, errors.Join(cause, err)
}

// ask puts one question: it is on the disk before it is sent, and so is whatever
// comes back before anything is made of it.
func (r *Run) ask(ctx context.Context, name, prompt string, f files) (model.Answer, *Attempt, error) {
	at := &Attempt{Name: name, Outcome: Failed}
	r.result.Attempts = append(r.result.Attempts, at)
	prompt = r.Clean(prompt)
	if err := r.Logs.Put(prompt, f.query...); err != nil {
		return model.Answer{}, at, err
	}
	r.sending = f.request
	r.Show.Say(fmt.Sprintf("%s: asking %s (about %d tokens)", name, r.Model.Name(), Tokens(len(prompt))))
	stop := r.Show.Wait(r.Model.Name())
	began := time.Now()
	a, err := r.Model.Ask(ctx, prompt)
	stop()
	took := time.Since(began)
	at.CallMS, at.Tries, at.Model, at.Finish = took.Milliseconds(), a.Tries, a.Model, string(a.Finish)
	at.Input, at.Output, at.Total = a.Usage.Input, a.Usage.Candidates, a.Usage.Total
	r.result.CallMS += at.CallMS
	text, body := a.Text, a.Body
	if err == nil && a.Finish == model.Blocked {
		err = fmt.Errorf("%w by %s (%s)", ErrBlocked, r.Model.Name(), a.Reason)
	}
	var wrong *model.Error
	if errors.As(err, &wrong) {
		body = wrong.Body
	}
	ended := "an answer"
	switch {
	case err != nil:
		ended = "no answer"
		at.Why, text = err.Error(), "ERROR\n"+err.Error()+"\n"
	case a.Finish == model.Cut:
		ended = "an answer that was cut off"
		text = "ERROR\nthe answer was cut off (" + a.Reason + "); what came of it:\n\n" + a.Text
	}
	ended += " after " + took.Round(100*time.Millisecond).String()
	if a.Usage.Total != nil {
		ended += fmt.Sprintf(", %d tokens", *a.Usage.Total)
	}
	r.Show.Say(name + ": " + ended)
	return a, at, errors.Join(err, r.Logs.Put(text, f.text...), r.Logs.Body(body, f.body...), r.enter(name, a, err, took))
}

// Sending keeps what is about to be sent, for whoever makes the model.
func (r *Run) Sending(body []byte) error {
	if r.sending == "" {
		return nil
	}
	return r.Logs.Put(string(body), r.sending)
}

// enter writes the call into the ledger.
func (r *Run) enter(name string, a model.Answer, err error, took time.Duration) error {
	ms := took.Milliseconds()
	row := ledger.Row{
		Timestamp: ledger.Stamp(time.Now()), Role: r.result.Workflow, Step: strconv.Itoa(len(r.result.Attempts)), Model: a.Model, Count: a.Usage,
		Source: ledger.API, CallID: r.Logs.Name() + "/" + name, Agent: "code-commit", DurationMS: &ms, Outcome: "done",
	}
	if row.Model == "" {
		row.Model = r.Model.Name()
	}
	var wrong *model.Error
	switch {
	case errors.As(err, &wrong):
		row.Outcome = string(wrong.Kind)
	case errors.Is(err, ErrBlocked):
		row.Outcome = string(model.Blocked)
	case err != nil:
		row.Outcome = "failed"
	case a.Finish != model.Whole:
		row.Outcome = string(a.Finish)
	}
	if !a.Usage.Known() {
		row.Source = ledger.Nobody
	}
	row.CostUSD = r.Price(row)
	notices, problem := r.Book.Append([]ledger.Row{row})
	for _, n := range notices {
		r.Show.Say("the ledger: " + n)
	}
	return problem
}

// Tokens guesses how many tokens so many bytes of code are.
func Tokens(bytes int) int { return (bytes + 3) / 4 }
