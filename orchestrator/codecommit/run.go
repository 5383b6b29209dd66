package codecommit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/internal/wording"
	"abl/roles/environment"
	"abl/roles/model"
)

// Model answers questions.
type Model interface {
	Name() string
	// Ask calls sent with the request before it is sent.
	Ask(ctx context.Context, prompt string, sent func(body []byte) error) (model.Answer, error)
}

// Run is one run of a workflow.
type Run struct {
	Project Project
	Inputs  Inputs
	Model   Model
	Guard   *PathGuard
	Builder Builder
	Began   time.Time // names the log folder
	Book    interface{ Append([]ledger.Row) error }
	Secrets *redact.Redactor  // removed from everything that is logged, sent or shown
	Keys    *redact.Redactor  // keys of providers, which no answer may contain
	Say     func(text string) // receives lines of progress
	Said    func(text string) // receives the model's messages to the user (protocol v1)

	Repairs int  // how often the model is asked for a repair
	Abort   bool // end on an unusable answer instead of asking again
	DryRun  bool // check the first answer, and change nothing

	Logs   *Folder // created when a workflow begins
	result Result
}

// Outcomes of a run, and of its attempts.
const (
	Passed   = "passed"
	Red      = "red"      // the build failed
	Unusable = "unusable" // the answer could not be used
	Planned  = "planned"  // a dry run's answer could be used
	Reported = "reported"
	Failed   = "failed" // an error ended it
)

// Result is the result of a run.
type Result struct {
	Workflow string     `json:"workflow"`
	Protocol string     `json:"protocol,omitempty"`
	Model    string     `json:"model"`
	Outcome  string     `json:"outcome"`
	Why      string     `json:"why,omitempty"`
	Logs     string     `json:"logs"`
	Attempts []*Attempt `json:"attempts"`
	Files    []Edit     `json:"files"`
	Report   string     `json:"report,omitempty"`
	Missing  []string   `json:"missing,omitempty"`
	CallMS   int64      `json:"call_ms"`
	BuildMS  int64      `json:"build_ms"`
}

// Attempt is one call and its result.
type Attempt struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
	// Why it changes nothing, in the model's words.
	Says    string `json:"says,omitempty"`
	Model   string `json:"model,omitempty"`
	Finish  string `json:"finish,omitempty"`
	Tries   int    `json:"tries"`
	CallMS  int64  `json:"call_ms"`
	BuildMS int64  `json:"build_ms,omitempty"`
	Exit    *int   `json:"exit,omitempty"`
	Input   *int64 `json:"input,omitempty"`
	Output  *int64 `json:"output,omitempty"`
	Total   *int64 `json:"total,omitempty"`
	// The files that it changed, or would change in a dry run.
	Files []Edit `json:"files,omitempty"`
	// Notes on the build, such as refused network requests.
	Notes []string `json:"notes,omitempty"`

	thoughts []string                   // for later calls
	printed  string                     // by the build, or why there was no build
	names    func(what string) []string // of its files in the log folder
}

// begin creates the folder of logs and reports it.
func (r *Run) begin(workflow string) (err error) {
	suffix := "-" + workflow
	if r.Project.Name == V1 {
		suffix = ""
	}
	if r.Logs, err = NewFolder(r.Project.Logs, r.Began, suffix, r.Secrets); err != nil {
		return err
	}
	r.Say("logs: " + r.Logs.Path)
	r.result = Result{
		Workflow: workflow,
		Protocol: r.Project.Name,
		Model:    r.Model.Name(),
		Logs:     r.Logs.Path,
		Attempts: []*Attempt{},
		Files:    []Edit{},
	}
	return nil
}

// end completes the result and writes it to the log folder.
func (r *Run) end(outcome string, cause error) (Result, error) {
	res := &r.result
	res.Outcome = outcome
	if !r.DryRun {
		res.Files = append(res.Files, latest(res.Attempts)...)
	}
	if cause != nil {
		res.Why = cause.Error()
	}
	data, _ := json.MarshalIndent(res, "", "  ") // cannot fail for texts and numbers
	err := r.Logs.Put(string(data)+"\n", "run.json")
	if outcome == Failed || outcome == Red || outcome == Unusable {
		err = errors.Join(err, r.Logs.Put(res.Why+"\n", "final_error.txt"))
	}
	return *res, errors.Join(cause, err)
}

// Commit asks for the change, applies it and builds, and asks for repairs until the build passes. A
// build that keeps failing is not an error.
func (r *Run) Commit(ctx context.Context) (Result, error) {
	if err := r.begin("committing-code"); err != nil {
		return Result{}, err
	}
	for n := 0; ; n++ {
		if err := r.attempt(ctx, n); err != nil {
			return r.end(Failed, err)
		}
		at := r.result.Attempts[n]
		if at.Outcome == Passed || n >= r.Repairs || r.DryRun || r.Abort && at.Outcome == Unusable {
			r.result.Why = at.Why
			return r.end(at.Outcome, nil)
		}
	}
}

// attempt makes one call, and the build after it.
func (r *Run) attempt(ctx context.Context, n int) error {
	at := &Attempt{Name: r.Project.step(n), names: func(what string) []string { return r.Project.logs(n, what) }}
	answer, err := r.ask(ctx, at, r.Project.prompt(r.Inputs, r.result.Attempts))
	if err != nil {
		return err
	}
	edits, err := r.understand(ctx, answer, at)
	const most = 2000
	at.Says = wording.Cut(strings.TrimSpace(r.Secrets.String(at.Says)), most)
	if at.Says != "" {
		r.Say(r.Model.Name() + " proposes no change: " + at.Says)
	}
	mistake, wrong := errors.AsType[Mistake](err)
	switch {
	case wrong:
		err, at.Outcome, at.Why = nil, Unusable, string(mistake)
		at.printed = "The answer could not be used, and nothing of it was applied:\n" + at.Why + "\n"
		r.Say("the answer cannot be used, so nothing was changed: " + at.Why)
	case err != nil:
		return err
	case r.DryRun:
		at.Outcome, at.Files = Planned, edits
	default:
		err = r.build(ctx, edits, at)
	}
	if r.DryRun || at.printed == "" {
		return err
	}
	return errors.Join(err, r.Logs.Put(at.printed, at.names("build.txt")...))
}

// understand parses and checks an answer. A Mistake is the model's error.
func (r *Run) understand(ctx context.Context, a model.Answer, at *Attempt) ([]Edit, error) {
	if a.Finish == model.Cut {
		const rest = "the rest of it is unknown: answer more briefly, with fewer or smaller files"
		return nil, Mistake("the answer was cut off (" + a.Reason + "), so " + rest)
	}
	if r.Keys.Holds([]byte(a.Text)) {
		return nil, Mistake("it contains the key of a provider, so nothing of it was used")
	}
	answer, wrong := ParseAnswer(a.Text, r.Project.Name == V1)
	for _, words := range answer.Said {
		r.Said(words)
		if r.DryRun {
			continue
		}
		file, text := filepath.Join(r.Project.Root, r.Project.UserOutput), r.Secrets.String(words)
		if err := hostfs.Append(file, []byte(text), logPerm); err != nil {
			return nil, err
		}
	}
	at.thoughts, at.Says = answer.Thoughts, strings.Join(answer.Calm, "\n")
	if wrong == errNoFile {
		at.Says = a.Text
	}
	if wrong != nil {
		return nil, wrong
	}
	return r.Guard.Check(ctx, answer.Edits)
}

// build applies the edits and builds.
func (r *Run) build(ctx context.Context, edits []Edit, at *Attempt) error {
	if len(edits) > 0 {
		if err := Apply(r.Project.Root, r.Project.Stage(), edits); err != nil {
			return err
		}
	}
	at.Files = edits
	r.Say(wording.Count(len(edits), "file") + " changed; building")
	began := time.Now()
	built, err := r.Builder.Build(ctx)
	at.BuildMS, at.Notes = time.Since(began).Milliseconds(), built.Notes
	at.printed = built.Text()
	r.result.BuildMS += at.BuildMS
	for _, note := range built.Notes {
		r.Say(note)
	}
	for name, text := range built.Records {
		err = errors.Join(err, r.Logs.Put(text, at.names(name)...))
	}
	if err != nil {
		return err
	}
	at.Exit, at.Outcome = &built.Code, Passed
	at.Why = built.Why()
	if at.Why != "" {
		at.Outcome = Red
		r.Say("the build fails: " + at.Why)
	}
	return nil
}

// ask asks one question. It writes the question to the log before it is sent, and the response
// before it is used.
func (r *Run) ask(ctx context.Context, at *Attempt, prompt string) (model.Answer, error) {
	at.Outcome = Failed
	r.result.Attempts = append(r.result.Attempts, at)
	prompt = r.Secrets.String(prompt)
	if err := r.Logs.Put(prompt, at.names("query.txt")...); err != nil {
		return model.Answer{}, err
	}
	r.Say(fmt.Sprintf("%s: asking %s (about %d tokens)", at.Name, r.Model.Name(), (len(prompt)+3)/4))
	began := time.Now()
	a, err := r.Model.Ask(ctx, prompt, func(body []byte) error {
		return r.Logs.Put(string(body), at.names("query.json")...)
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
		text = "ERROR\nthe answer was cut off (" + a.Reason + "); its text:\n\n" + a.Text
	}
	ended += " after " + took.Round(100*time.Millisecond).String()
	if a.Usage.Total != nil {
		ended += fmt.Sprintf(", %d tokens", *a.Usage.Total)
	}
	r.Say(at.Name + ": " + ended)
	return a, errors.Join(classed(err), r.Logs.Put(text, at.names("response.txt")...),
		r.Logs.Body(a.Body, at.names("response.json")...), r.enter(at.Name, a, err, took))
}

// classed adds the class to the error of a question.
func classed(err error) error {
	e, is := errors.AsType[*model.Error](err)
	switch {
	case !is:
		return err
	case e.Kind.Transient():
		return &environment.Error{Class: environment.Away, Do: "try again later", Err: err}
	}
	return &environment.Error{Class: environment.Refused, Err: err, Do: map[outcome.Outcome]string{
		outcome.Refused: "check the key", outcome.Filtered: "reword the query, or use another model (--model)",
	}[e.Kind]}
}

// enter adds the call to the ledger.
func (r *Run) enter(name string, a model.Answer, err error, took time.Duration) error {
	row := ledger.Row{
		Timestamp:  ledger.Stamp(time.Now()),
		Role:       r.result.Workflow,
		Step:       strconv.Itoa(len(r.result.Attempts)),
		Model:      cmp.Or(a.Model, r.Model.Name()),
		Count:      a.Usage,
		Source:     ledger.API,
		CallID:     filepath.Base(r.Logs.Path) + "/" + name,
		Agent:      "code-commit",
		DurationMS: new(took.Milliseconds()),
		Outcome:    string(outcome.Done),
	}
	e, is := errors.AsType[*model.Error](err)
	switch {
	case is:
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
	rows := []ledger.Row{row}
	if a.Lost {
		row.Source, row.Count, row.CostUSD = ledger.Nobody, usage.Count{}, ledger.Unknown
		rows = append(slices.DeleteFunc(rows, func(r ledger.Row) bool { return r.Source == row.Source }), row)
	}
	return r.Book.Append(rows)
}

// Folder is the log folder of one run. Secrets are removed from its files.
type Folder struct {
	Path    string
	secrets *redact.Redactor
}

// logPerm is the mode of logs: prompts contain the code, which may be private.
const logPerm = 0o600

// NewFolder creates a log folder that is named after the time.
func NewFolder(dir string, now time.Time, suffix string, secrets *redact.Redactor) (*Folder, error) {
	name := filepath.Join(dir, now.Format("2006-01-02-15-04-05")+suffix)
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = hostfs.MkdirAll(filepath.Dir(dir), filepath.Base(dir)) // follows no link of the project
	}
	for i, path := 2, name; err == nil || errors.Is(err, fs.ErrExist); i++ {
		if err = os.Mkdir(path, 0o755); err == nil {
			return &Folder{Path: path, secrets: secrets}, nil
		}
		path = name + "-" + strconv.Itoa(i)
	}
	return nil, fmt.Errorf("cannot create the log folder: %w", err)
}

// Put writes a file under each of its names.
func (f *Folder) Put(text string, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, hostfs.Write(filepath.Join(f.Path, name), []byte(f.secrets.String(text)), logPerm))
	}
	return errors.Join(errs...)
}

// Body writes a response as JSON, because the file's name ends in .json: a stream of events as a list of
// their documents, and a text that is not JSON as a string in an object.
func (f *Folder) Body(body []byte, names ...string) error {
	var docs [][]byte
	for line := range bytes.Lines(body) {
		if doc, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); is && json.Valid(doc) {
			docs = append(docs, doc)
		}
	}
	if len(docs) > 0 {
		body = slices.Concat([]byte("[\n"), bytes.Join(docs, []byte(",\n")), []byte("\n]\n"))
	}
	if !json.Valid(body) {
		// Cannot fail for a string.
		wrapped, _ := json.Marshal(map[string]string{"not_json": string(body)})
		body = append(wrapped, '\n')
	}
	return f.Put(string(body), names...)
}
