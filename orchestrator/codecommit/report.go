package codecommit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/prompts"
	"abl/roles/model"
)

// Report is a parsed report on consistency.
type Report struct {
	Model    string    `json:"model"`
	Sections []Section `json:"sections"`
	Missing  []string  `json:"missing"` // titles that the model left out
	Preamble string    `json:"preamble,omitempty"`
	Cut      bool      `json:"cut"` // it is incomplete
}

// Section is one section of a report.
type Section struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// SplitReport splits a report at its titles. It ignores numbers and marks of headlines or lists
// around them.
func SplitReport(text string) Report {
	rep := Report{Sections: []Section{}, Missing: []string{
		"User Specification Self Consistency",
		"Implementation Consistency with User Specification",
		"Errors and Mistakes within the User Specification",
		"Errors and Mistakes within the Implementation",
		"Suggestions and Other Important Commentary",
	}}
	into := &rep.Preamble
	for l := range strings.Lines(text) {
		bare := strings.Trim(l, "#*_=+-:. \t\r\n0123456789)(")
		i := slices.IndexFunc(rep.Missing, func(title string) bool { return strings.EqualFold(bare, title) })
		if i < 0 {
			*into += l
			continue
		}
		rep.Sections = append(rep.Sections, Section{Title: rep.Missing[i]})
		into = &rep.Sections[len(rep.Sections)-1].Text
		rep.Missing = slices.Delete(rep.Missing, i, i+1)
	}
	rep.Preamble = strings.TrimSpace(rep.Preamble)
	for i := range rep.Sections {
		rep.Sections[i].Text = strings.TrimSpace(rep.Sections[i].Text)
	}
	return rep
}

// ReportFile is the default path of a report.
const ReportFile = ConfigDir + "/consistency-report.txt"

// Consistency asks for a report and writes it to a path, with its sections as JSON next to it.
func (r *Run) Consistency(ctx context.Context, path string) (Result, string, error) {
	prompt := join("system prompt", prompts.Consistency, "query", r.Inputs.Query, "codebase", r.Inputs.Codebase)
	return r.once(ctx, "consistency-report", prompt, func(text string, a model.Answer, at *Attempt) error {
		if strings.TrimSpace(text) == "" {
			return unusable("the answer of " + r.Model.Name() + " is empty")
		}
		rep := SplitReport(text)
		rep.Model, rep.Cut = a.Model, a.Finish != model.Whole
		if rep.Cut {
			at.Outcome, at.Why = Unusable, "the report was cut off ("+a.Reason+")"
		}
		r.result.Report, r.result.Missing = path, rep.Missing
		parts, _ := json.MarshalIndent(rep, "", "  ") // cannot fail for texts
		beside := strings.TrimSuffix(path, filepath.Ext(path)) + ".json"
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			hostfs.Write(path, []byte(text), logPerm), hostfs.Write(beside, append(parts, '\n'), logPerm))
	})
}

// Ask asks one question for a workflow that uses the answer itself.
func (r *Run) Ask(ctx context.Context, workflow, prompt string) (Result, string, error) {
	return r.once(ctx, workflow, prompt, func(_ string, a model.Answer, _ *Attempt) error {
		if a.Finish != model.Whole {
			return unusable("the answer of " + r.Model.Name() + " was cut off (" + a.Reason + ")")
		}
		return nil
	})
}

// once runs a workflow with one question. It returns the answer without secrets.
func (r *Run) once(
	ctx context.Context, workflow, prompt string, use func(string, model.Answer, *Attempt) error,
) (Result, string, error) {
	if err := r.begin(workflow); err != nil {
		return Result{}, "", err
	}
	r.result.Protocol = ""
	at := &Attempt{Name: "query", names: func(what string) []string { return []string{what} }}
	a, err := r.ask(ctx, at, prompt)
	text := r.Secrets.String(a.Text)
	if err == nil {
		at.Outcome = Reported
		err = use(text, a, at)
	}
	if err != nil {
		at.Outcome = Failed
	}
	r.result.Why = at.Why
	res, err := r.end(at.Outcome, err)
	return res, text, err
}

// unusable returns the error for an answer that cannot be used.
func unusable(why string) error { return classed(&model.Error{Kind: outcome.Filtered, What: why}) }

// withheld are names of files that usually contain secrets or are generated.
const withheld = ".env* *.pem *.key *.p12 *.pfx *.keystore *.jks id_rsa* id_ed25519* id_ecdsa* *-key.txt " +
	".npmrc .netrc .pypirc credentials* secrets.* " +
	"go.sum *.lock package-lock.json npm-shrinkwrap.json pnpm-lock.yaml packages.lock.json gradle.lockfile"

// Collect returns the files of a folder as one text for a model. It leaves out files that contain
// secrets, are not text, cannot be read, or are generated. left lists these with the reasons.
func Collect(root string, names []string, secrets *redact.Redactor) (text string, left []string) {
	const most = 1 << 20
	var b strings.Builder
	unwanted := rules(strings.ReplaceAll(withheld, " ", "\n"))
	for _, name := range names {
		data, err := hostfs.Read(root, name, most)
		why := ""
		switch {
		case unwanted.Ignored(strings.ToLower(path.Base(name)), false):
			why = "its name suggests that it contains secrets or is generated"
		case err != nil:
			why = err.Error()
		case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
			why = "not text"
		case bytes.Contains(data, []byte("PRIVATE KEY-----")), secrets.Holds(data):
			why = "it contains a secret"
		default:
			b.WriteString("--- FILE " + name + " ---\n" + line(string(data)))
			continue
		}
		left = append(left, name+": "+why)
	}
	return b.String(), left
}
