package codecommit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/roles/environment"
	"abl/roles/model"
)

// ask puts one question: it is on the disk before it is sent, and so is whatever
// comes back before anything is made of it. names are the files of the call.
func (r *Run) ask(ctx context.Context, name, prompt string, names func(what string) []string) (model.Answer, *Attempt, error) {
	at := &Attempt{Name: name, Outcome: Failed, names: names}
	r.result.Attempts = append(r.result.Attempts, at)
	prompt = r.Secrets.String(prompt)
	if err := r.Logs.Put(prompt, names("query.txt")...); err != nil {
		return model.Answer{}, at, err
	}
	r.Say(fmt.Sprintf("%s: asking %s (about %d tokens)", name, r.Model.Name(), (len(prompt)+3)/4))
	began := time.Now()
	a, err := r.Model.Ask(ctx, prompt, func(body []byte) error {
		return r.Logs.Put(string(body), names("query.json")...)
	})
	took := time.Since(began)
	at.CallMS, at.Tries, at.Model, at.Finish = took.Milliseconds(), a.Tries, a.Model, string(a.Finish)
	at.Input, at.Output, at.Total = a.Usage.Input, a.Usage.Candidates, a.Usage.Total
	r.result.CallMS += at.CallMS
	text, ended := a.Text, "an answer"
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
	r.Say(name + ": " + ended)
	kept := errors.Join(r.Logs.Put(text, names("response.txt")...), r.Logs.Body(a.Body, names("response.json")...), r.enter(name, a, err, took))
	return a, at, errors.Join(classed(err), kept)
}

// classed says whose matter it is that there is no answer.
func classed(err error) error {
	e, told := errors.AsType[*model.Error](err)
	switch {
	case !told:
		return err
	case e.Kind.Transient():
		return &environment.Error{Class: environment.Away, Do: "try again later", Err: err}
	}
	return &environment.Error{Class: environment.Refused, Err: err, Do: map[outcome.Outcome]string{
		outcome.Refused: "check the key", outcome.Filtered: "word the query differently, or ask another model (--model)",
	}[e.Kind]}
}

// enter writes the call into the ledger.
func (r *Run) enter(name string, a model.Answer, err error, took time.Duration) error {
	row := ledger.Row{
		Timestamp: ledger.Stamp(time.Now()), Role: r.result.Workflow, Step: strconv.Itoa(len(r.result.Attempts)), Model: cmp.Or(a.Model, r.Model.Name()),
		Count: a.Usage, Source: ledger.API, CallID: filepath.Base(r.Logs.Path) + "/" + name, Agent: "code-commit",
		DurationMS: new(took.Milliseconds()), Outcome: string(outcome.Done),
	}
	e, told := errors.AsType[*model.Error](err)
	switch {
	case told:
		row.Outcome = string(e.Kind)
	case err != nil:
		row.Outcome = string(outcome.Failed)
	case a.Finish == model.Cut:
		row.Outcome = string(outcome.Cut)
	}
	if !a.Usage.Known() {
		row.Source = ledger.Nobody
	}
	row.CostUSD = ledger.Cost(row)
	return r.Book.Append([]ledger.Row{row})
}

// Folder is the log folder of one run. Whatever is written there has no secret
// in it.
type Folder struct {
	Path    string
	secrets *redact.Redactor
}

// logPerm: prompts hold the code, which is not everybody's.
const logPerm = 0o600

// NewFolder makes a log folder that is named after the time.
func NewFolder(dir string, now time.Time, suffix string, secrets *redact.Redactor) (*Folder, error) {
	name, err := filepath.Join(dir, now.Format("2006-01-02-15-04-05")+suffix), os.MkdirAll(dir, 0o755)
	for i, path := 2, name; err == nil || errors.Is(err, fs.ErrExist); i++ {
		if err = os.Mkdir(path, 0o755); err == nil {
			return &Folder{Path: path, secrets: secrets}, nil
		}
		path = name + "-" + strconv.Itoa(i)
	}
	return nil, fmt.Errorf("cannot make the folder of the logs: %w", err)
}

// Put writes a file, under all of its names.
func (f *Folder) Put(text string, names ...string) error {
	data := []byte(f.secrets.String(text))
	for i, name := range names {
		path := filepath.Join(f.Path, name)
		if i > 0 && os.Link(filepath.Join(f.Path, names[0]), path) == nil {
			continue // but on a file system without second names
		}
		if err := hostfs.Write(path, data, logPerm); err != nil {
			return err
		}
	}
	return nil
}

// Body writes a response as it was received; what is no JSON is wrapped, so that
// the file is what its name says.
func (f *Folder) Body(body []byte, names ...string) error {
	if !json.Valid(body) {
		wrapped, _ := json.Marshal(map[string]string{"not_json": string(body)}) // a string cannot fail
		body = append(wrapped, '\n')
	}
	return f.Put(string(body), names...)
}
