package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/orchestrator/report"
)

// OutputFlags returns the flags for the files that a run of phases writes.
func OutputFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "junit", Value: "FILE", Usage: "write contracts and evidence to FILE as JUnit XML"},
		{Name: "summary", Value: "FILE", Usage: "write verdict, contracts, iterations and costs to FILE as Markdown"},
		{Name: "html", Value: "FILE", Usage: "write the page of the last phase that ran to FILE"},
	}
}

// summaryVar names the file for the summary of a step in GitHub Actions.
const summaryVar = "GITHUB_STEP_SUMMARY"

// Outputs writes the files of OutputFlags, the page and the CI summary, and notifies the user.
type Outputs struct {
	*project.Project
	Out  *Notifier
	runs []report.Run // the runs that have ended
}

// Begin writes all files before the run of phase n, with the result that abl was stopped. So abl detects
// a file that it cannot write before it spends anything, and no older file remains if abl is killed.
func (o *Outputs) Begin(n int) error {
	named := map[string]string{}
	for _, f := range OutputFlags() {
		path := o.In.String(f.Name)
		if path == "" {
			continue
		}
		whole, _ := filepath.Abs(path)
		if other := named[whole]; other != "" {
			return cli.Usagef("--%s and --%s name the same file, %q", other, f.Name, path)
		}
		named[whole] = f.Name
		if err := writable(o.Project, path); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("cannot write the file of --%s: %w", f.Name, err), "")
		}
	}
	what := "abl was stopped before the run ended"
	err := o.write(report.Run{Phase: n, Ended: &report.Ended{Code: exit.Bug, What: what}})
	if err != nil {
		return exit.With(exit.Usage, err, "name a writable file")
	}
	return nil
}

// writable returns an error if abl cannot or may not write the file: one in a role's directory, or one
// that is not a regular file.
func writable(s *project.Project, path string) error {
	dir, err := state.Real(filepath.Dir(path))
	if err != nil {
		return exit.With(exit.Usage, err, "create its directory first")
	}
	for _, work := range []string{s.Paths.Src, s.Paths.Tests} {
		if rel, err := filepath.Rel(work, dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return cli.WithHint("name a file elsewhere, such as .abl/reports/"+filepath.Base(path),
				"%q is in %s, a role's directory", path, s.Paths.Rel(work))
		}
	}
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return cli.WithHint("name another file", "%q is not a regular file", path)
	}
	return nil
}

// write writes the files for the runs that have ended, and for r.
func (o *Outputs) write(r report.Run) error {
	all, page := append(o.runs, r), ""
	data, err := report.JUnit(all...)
	for _, r := range all {
		page += report.Markdown(r)
	}
	html := "<!doctype html><title>abl</title>abl was stopped before it wrote this page\n"
	for _, f := range []struct{ flag, text string }{{"junit", string(data)}, {"summary", page}, {"html", html}} {
		if path := o.In.String(f.flag); path != "" && err == nil {
			if err = hostfs.Write(path, []byte(f.text), 0o644); err != nil {
				err = fmt.Errorf("cannot write the file of --%s: %w", f.flag, err)
			}
		}
	}
	return err
}

// Finish publishes a passed phase if publish.when is auto, writes the files and notifies the user. It
// returns ended, or the error of publishing or writing if the run itself succeeded. It adds that error to
// the text of e.
func (o *Outputs) Finish(ctx context.Context, n int, e *state.Event, ended error) error {
	judged := isVerdict(exit.Code(exit.Because(ctx, ended)))
	if ended == nil && o.Conf.Publish.When == "auto" {
		if ended = project.AutoPublish(ctx, o.Project); ended != nil {
			e.Text += ": " + ended.Error()
		}
	}
	named := slices.ContainsFunc(OutputFlags(), func(f cli.Flag) bool { return o.In.String(f.Name) != "" })
	if named || judged || os.Getenv(summaryVar) != "" {
		ended = o.files(ctx, n, e, ended, judged)
	}
	end := *e
	if ended != nil {
		end.Text = ended.Error()
	}
	o.Out.Ended(end, exit.Code(ended))
	return ended
}

// files writes the files of a run of phase n. It returns ended, or the error of writing if the run itself
// succeeded.
func (o *Outputs) files(ctx context.Context, n int, e *state.Event, ended error, judged bool) error {
	r := RunOf(ctx, o.Project, n, ended)
	if judged && r.Record != nil {
		r.Page = savePage(context.WithoutCancel(ctx), o.Project, r)
	}
	if r.Page != "" {
		o.Out.Emit(state.Event{Kind: state.Note, Phase: n, Text: "full report: " + fromHere(r.Page)})
	}
	html := o.In.String("html")
	r.Page = cmp.Or(html, r.Page)
	err := o.write(r)
	o.runs = append(o.runs, r)
	if html != "" {
		err = errors.Join(err, writable(o.Project, html)) // the run may have replaced the file
	}
	if html != "" && err == nil {
		err = writePage(context.WithoutCancel(ctx), o.Project, r, html)
	}
	if summary := os.Getenv(summaryVar); summary != "" {
		if err := appendTo(summary, report.Markdown(r)); err != nil {
			o.In.Warn(fmt.Sprintf("cannot write to %s: %v", summaryVar, err))
		}
	}
	if ended == nil && err != nil {
		e.Text += ": " + err.Error()
		return exit.With(exit.Environment, err, "the phase itself has ended: abl report shows it")
	}
	if err != nil {
		o.In.Warn(err)
	}
	return ended
}

// fromHere returns a path relative to the current directory if the file is below it.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err == nil {
		here, err = state.Real(here)
	}
	if rel, rerr := filepath.Rel(here, path); err == nil && rerr == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// reportOf returns the data for a report on phase n: its audit records, usage and changed files.
func reportOf(ctx context.Context, s *project.Project, n int) (r report.Run, err error) {
	specs := s.Specs()
	this, _ := specs.Phase(n)
	r = report.Run{
		Phase:       n,
		Title:       this.Title,
		Files:       -1,
		Unpublished: s.Unpublished(),
		More:        slices.Contains(specs.Numbers(), n+1),
	}
	if r.Before, err = s.Records(n); err != nil {
		return r, err
	}
	if last := len(r.Before) - 1; last >= 0 {
		r.Record, r.Before = &r.Before[last], r.Before[:last]
	}
	if r.Used, err = s.Used(n); err != nil {
		return r, err
	}
	if r.Record != nil {
		r.Files = s.FilesChanged(ctx, n)
	}
	return r, nil
}

// isVerdict reports whether a run with this exit code ended with a verdict.
func isVerdict(code int) bool {
	return code == exit.Passed || code == exit.Stuck || code == exit.Unverified
}

// RunOf returns the data for a report on a run of phase n. If the run has no verdict, the data contains
// no record of an earlier round.
func RunOf(ctx context.Context, s *project.Project, n int, ended error) report.Run {
	err := exit.Because(ctx, ended)
	code := exit.Code(err)
	r, terr := reportOf(context.WithoutCancel(ctx), s, n)
	if terr != nil {
		s.In.Warn(terr)
	}
	f, serr := s.State()
	if serr != nil {
		f = &state.File{}
	}
	if !isVerdict(code) {
		r.Ended = &report.Ended{Code: code, What: s.In.Safe.Line(err.Error())}
		if r.Record != nil && f.Phase(n).Round != r.Record.Round {
			r.Record = nil
		}
	}
	if r.Record == nil && r.Ended == nil {
		r.Ended = &report.Ended{Code: code, What: "it has no audit record"}
	}
	return r
}

// appendTo appends text to a file, and creates it if necessary.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
