package main

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
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/orchestrator/report"
)

// tellFlags name the files that a run of phases writes for others.
func tellFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "junit", Value: "FILE", Usage: "write the contracts and their evidence there as JUnit XML"},
		{Name: "summary", Value: "FILE", Usage: "write verdict, contracts, iterations and costs there as Markdown"},
		{Name: "html", Value: "FILE", Usage: "write the page of the last phase that was run there"},
	}
}

// summaryVar is where GitHub wants what a step has to say.
const summaryVar = "GITHUB_STEP_SUMMARY"

// telling tells those who asked for it how phases ended.
type telling struct {
	*phase.Project
	out  *phase.Notifier
	runs []report.Run // that have ended
}

// begin sees to it, before anything is spent on phase n, that the files can be written, and
// lets them say that its run did not end: an older file must not pass for this run's, should
// abl be killed.
func (t *telling) begin(n int) error {
	named := map[string]string{}
	for _, f := range tellFlags() {
		path := t.In.String(f.Name)
		if path == "" {
			continue
		}
		whole, _ := filepath.Abs(path)
		if other := named[whole]; other != "" {
			return cli.Usagef("--%s and --%s name one file, %q", other, f.Name, path)
		}
		named[whole] = f.Name
		if err := writable(t.Project, path); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("cannot write the file of --%s: %w", f.Name, err), "")
		}
	}
	what := "abl was stopped before it could say how the run ended"
	err := t.write(report.Run{Phase: n, Ended: &report.Ended{Code: exit.Bug, What: what}})
	if err != nil {
		return exit.With(exit.Usage, err, "name a file that can be written")
	}
	return nil
}

// writable says why a file may not be written.
func writable(s *phase.Project, path string) error {
	dir, err := state.Real(filepath.Dir(path))
	if err != nil {
		return exit.With(exit.Usage, err, "make its directory first")
	}
	for _, work := range []string{s.Paths.Src, s.Paths.Tests} {
		if rel, err := filepath.Rel(work, dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return cli.WithHint("name a file elsewhere, such as .abl/reports/"+filepath.Base(path), "%q is in %s, a role's directory", path, s.Paths.Rel(work))
		}
	}
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return cli.WithHint("name another file", "%q is there and no plain file", path)
	}
	return nil
}

// write writes what there is to tell of the phases so far, and of this one.
func (t *telling) write(r report.Run) error {
	all, page := append(t.runs, r), ""
	data, err := report.JUnit(all...)
	for _, r := range all {
		page += report.Markdown(r)
	}
	html := "<!doctype html><title>abl</title>abl did not come to write this page\n"
	for flag, text := range map[string]string{"junit": string(data), "summary": page, "html": html} {
		if path := t.In.String(flag); path != "" && err == nil {
			if err = hostfs.Write(path, []byte(text), 0o644); err != nil {
				err = fmt.Errorf("cannot write the file of --%s: %w", flag, err)
			}
		}
	}
	return err
}

// tell publishes where that is wanted, and tells those who asked for it how a run of phase n
// ended. It never changes how that was, but for a run that went well and cannot be published
// or told of: e says so then.
func (t *telling) tell(ctx context.Context, n int, e *state.Event, ended error) error {
	judged := isVerdict(exit.Code(exit.Because(ctx, ended)))
	if ended == nil && t.Conf.Publish.When == "auto" {
		if ended = autoPublish(ctx, t.Project); ended != nil {
			e.Text += ": " + ended.Error()
		}
	}
	named := slices.ContainsFunc(tellFlags(), func(f cli.Flag) bool { return t.In.String(f.Name) != "" })
	if named || judged || os.Getenv(summaryVar) != "" {
		ended = t.files(ctx, n, e, ended, judged)
	}
	end := *e
	if ended != nil {
		end.Text = ended.Error()
	}
	t.out.Ended(end, exit.Code(ended))
	return ended
}

// files writes the files that tell of a run of phase n, and returns how it ended with that.
func (t *telling) files(ctx context.Context, n int, e *state.Event, ended error, judged bool) error {
	r := runOf(ctx, t.Project, n, ended)
	kept := ""
	if judged && r.Record != nil {
		if kept = keepPage(context.WithoutCancel(ctx), t.Project, r); kept != "" {
			t.out.Emit(state.Event{Time: time.Now(), Kind: state.Note, Phase: n, Text: "full report: " + fromHere(kept)})
		}
	}
	html := t.In.String("html")
	r.Page = cmp.Or(html, kept)
	err := t.write(r)
	t.runs = append(t.runs, r)
	if html != "" {
		// The run may have changed what is there.
		if err = errors.Join(err, writable(t.Project, html)); err == nil {
			err = writePage(context.WithoutCancel(ctx), t.Project, r, html)
		}
	}
	if page := os.Getenv(summaryVar); page != "" {
		if perr := appendTo(page, report.Markdown(r)); perr != nil {
			t.In.Warn(fmt.Sprintf("cannot write to %s: %v", summaryVar, perr))
		}
	}
	if ended == nil && err != nil {
		e.Text += ": " + err.Error()
		return exit.With(exit.Environment, err, "the phase itself is done: abl report shows it")
	}
	if err != nil {
		t.In.Warn(err)
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

// told is what there is to report of phase n, all its iterations judged so far among it.
func told(ctx context.Context, s *phase.Project, n int) (r report.Run, err error) {
	this, _ := s.Specs().Phase(n)
	r = report.Run{Phase: n, Title: this.Title, Files: -1}
	if r.Before, err = phase.Records(s, n); err != nil {
		return r, err
	}
	if last := len(r.Before) - 1; last >= 0 {
		r.Record, r.Before = &r.Before[last], r.Before[:last]
	}
	if r.Used, err = phase.Used(s, n); err != nil {
		return r, err
	}
	if r.Record != nil {
		r.Files = phase.FilesChanged(ctx, s, n)
	}
	return r, nil
}

// isVerdict says that a run ends with this exit code when its phase was judged.
func isVerdict(code int) bool {
	return code == exit.Passed || code == exit.Stuck || code == exit.Unverified
}

// runOf is what there is to tell of a run of phase n. What stands there of an
// earlier round is not told with a run that came to no verdict.
func runOf(ctx context.Context, s *phase.Project, n int, ended error) report.Run {
	err := exit.Because(ctx, ended)
	code := exit.Code(err)
	r, terr := told(context.WithoutCancel(ctx), s, n)
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
		r.Ended = &report.Ended{Code: code, What: "no audit record of it is kept"}
	}
	return r
}

// appendTo adds to a file that the person's CI names.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
