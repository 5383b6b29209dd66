package codecommit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
	"abl/prompts"
	"abl/roles/model"
)

// Titles are those of the sections of a report on consistency.
func Titles() []string {
	return []string{
		"User Specification Self Consistency",
		"Implementation Consistency with User Specification",
		"Errors and Mistakes within the User Specification",
		"Errors and Mistakes within the Implementation",
		"Suggestions and Other Important Commentary",
	}
}

// Report is a report on consistency, taken apart.
type Report struct {
	Model    string    `json:"model"`
	Sections []Section `json:"sections"`
	Missing  []string  `json:"missing"` // titles that the model left out
	Preamble string    `json:"preamble,omitempty"`
	Cut      bool      `json:"cut"` // it ends before its end
}

// Section is one of its parts.
type Section struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// SplitReport takes a report apart at the titles, however the model adorned them.
func SplitReport(text string) Report {
	rep := Report{Sections: []Section{}, Missing: []string{}}
	var current *Section
	for l := range strings.Lines(text) {
		if title := titleOf(l); title != "" && !rep.has(title) {
			rep.Sections = append(rep.Sections, Section{Title: title})
			current = &rep.Sections[len(rep.Sections)-1]
			continue
		}
		if current == nil {
			rep.Preamble += l
			continue
		}
		current.Text += l
	}
	rep.Preamble = strings.TrimSpace(rep.Preamble)
	for i := range rep.Sections {
		rep.Sections[i].Text = strings.TrimSpace(rep.Sections[i].Text)
	}
	for _, t := range Titles() {
		if !rep.has(t) {
			rep.Missing = append(rep.Missing, t)
		}
	}
	return rep
}

func (r Report) has(title string) bool {
	for _, s := range r.Sections {
		if s.Title == title {
			return true
		}
	}
	return false
}

// titleOf is the title that a line is: with numbers, marks of headlines or of
// lists before it, and marks after it.
func titleOf(line string) string {
	bare := strings.Trim(strings.TrimSpace(line), "#*_=+-:. \t0123456789)(")
	for _, t := range Titles() {
		if strings.EqualFold(bare, t) {
			return t
		}
	}
	return ""
}

// ReportFile is where a report is left.
const ReportFile = ConfigDir + "/consistency-report.txt"

// ReportInputs are what a person asks about, if anything, and the code.
func (p Project) ReportInputs() (in Inputs, err error) {
	for _, name := range []string{p.Query, ConfigDir + "/consistency-query.txt"} { // the last one counts
		query, err := p.need(name, "", "", maxQuery)
		if err == nil && query != firstQuery { // somebody has written into it
			in.Query = query
		} else if err != nil && !errors.Is(err, errMissing) {
			return in, err
		}
	}
	in.Codebase, err = p.codebase()
	return in, err
}

// Consistency asks for a report and leaves it at a path, its sections beside it.
func (r *Run) Consistency(ctx context.Context, path string) (Result, string, error) {
	r.begin("consistency-report")
	r.result.Protocol = ""
	prompt := join([]section{{"system prompt", prompts.Consistency}, {"query", r.Inputs.Query}, {"codebase", r.Inputs.Codebase}})
	a, at, err := r.ask(ctx, "query", prompt, oneCall())
	if err == nil && strings.TrimSpace(a.Text) == "" {
		err = fmt.Errorf("%w by %s: it is empty", ErrBlocked, r.Model.Name())
	}
	if err != nil {
		res, err := r.end(Failed, err)
		return res, "", err
	}
	text := r.Clean(a.Text)
	rep := SplitReport(text)
	rep.Model, rep.Cut = a.Model, a.Finish != model.Whole
	sidecar, err := json.MarshalIndent(rep, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = hostfs.Write(path, []byte(text), logPerm)
	}
	if err == nil {
		err = hostfs.Write(strings.TrimSuffix(path, filepath.Ext(path))+".json", append(sidecar, '\n'), logPerm)
	}
	if err != nil {
		res, err := r.end(Failed, err)
		return res, "", err
	}
	r.result.Report, r.result.Missing = path, rep.Missing
	at.Outcome = Reported
	if rep.Cut {
		at.Outcome, at.Why, r.result.Why = Unusable, "the report was cut off ("+a.Reason+")", "the report was cut off ("+a.Reason+")"
	}
	res, err := r.end(at.Outcome, nil)
	return res, text, err
}

// Ask puts one question for a workflow that makes something of the answer itself.
func (r *Run) Ask(ctx context.Context, workflow, prompt string) (answer string, err error) {
	r.begin(workflow)
	a, at, err := r.ask(ctx, "query", prompt, oneCall())
	if err == nil && a.Finish != model.Whole {
		err = fmt.Errorf("%w by %s: it was cut off (%s)", ErrBlocked, r.Model.Name(), a.Reason)
	}
	if at.Outcome = Reported; err != nil {
		at.Outcome = Failed
	}
	_, err = r.end(at.Outcome, err)
	return r.Clean(a.Text), err
}

// oneCall are the files of a workflow that asks once.
func oneCall() files {
	return files{query: []string{"query.txt"}, request: "query.json", text: []string{"response.txt"}, body: []string{"response.json"}}
}
