package look

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/orchestrator"
	"abl/orchestrator/report"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/replay"
)

// pagePath returns the path of a phase's page.
func pagePath(s *project.Project, n int) string { return audit.Dir(s.Paths, n) + ".html" }

// savePage writes the page of a phase that ended with a verdict next to its records, and returns its
// path. If that fails it prints a warning and returns "".
func savePage(ctx context.Context, s *project.Project, r report.Run) string {
	r.Ended = nil // Ended may be the failure of publishing
	path := pagePath(s, r.Phase)
	if err := writePage(ctx, s, r, path); err != nil {
		s.In.Warn(errors.Join(err, os.RemoveAll(path))) // an older page shows another verdict
		return ""
	}
	return path
}

// writePage writes the report page of a phase to a file.
func writePage(ctx context.Context, s *project.Project, r report.Run, path string) error {
	data, err := pageOf(ctx, s, r)
	if err != nil {
		return err
	}
	unlock, err := s.Lock() // unlock makes the user the owner of the file
	if err == nil {
		defer unlock()
	}
	if err := hostfs.Write(path, data, 0o644); err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot write the page: %w", err),
			"name a writable file: abl report --html FILE")
	}
	return nil
}

// Limits on the data that is read for a page.
const (
	maxDiffs      = 8 << 20  // bytes of all diffs
	maxTranscript = 8 << 20  // bytes of all messages of agents
	maxText       = 16 << 20 // bytes of the files that are compared
	maxFiles      = 1000     // files of an iteration
)

// pageOf returns the page of a phase, made from the records, logs and repositories.
func pageOf(ctx context.Context, s *project.Project, run report.Run) ([]byte, error) {
	p := report.Page{Run: run, Src: s.Paths.Rel(s.Paths.Src), Abl: s.In.Version(), Seen: map[int]report.Exchanges{}}
	records := run.Judged()
	for _, r := range records {
		var err error
		if p.Seen[r.Step], err = replay.Exchanges(s.Paths, r, s.In.Safe.Bytes); err != nil {
			s.In.Warn(err)
		}
		p.Changes = append(p.Changes, report.Change{Step: r.Step, To: r.Commits.Source})
		p.Tests = append(p.Tests, report.Change{Step: r.Step, To: r.Commits.Tests})
		for _, c := range r.Calls {
			p.Turns = append(p.Turns, report.Turn{Call: c, Step: r.Step})
		}
	}
	if err := errors.Join(readCalls(s, &p), readLedger(s, &p)); err != nil {
		return nil, err
	}
	unknown := func(what string, err error) string {
		return what + s.In.Safe.Line(strings.ReplaceAll(err.Error(), s.Paths.Root, "."))
	}
	c := changes{s, maxDiffs, maxText}
	if err := s.StepChanges(ctx, run.Phase, s.Paths.Src, records, c.into(p.Changes)); err != nil {
		p.Changes, p.Tests, p.Unknown = nil, nil, unknown("Cannot read the changes: ", err)
	} else if err := s.StepChanges(ctx, run.Phase, s.Paths.Tests, records, c.into(p.Tests)); err != nil {
		p.Tests, p.Unknown = nil, unknown("Cannot read the changes of the tests: ", err)
	}
	p.Tests = slices.DeleteFunc(p.Tests, func(c report.Change) bool { return len(c.Files) == 0 })
	readSettings(s, &p)
	var page bytes.Buffer
	err := report.HTML(&page, p)
	return page.Bytes(), err
}

// changes collects the changes of iterations, up to its limits.
type changes struct {
	s    *project.Project
	room int   // bytes left for diffs
	left int64 // bytes left for the files that are compared
}

// into returns a function that adds a changed file to the iteration of index i in all.
func (h *changes) into(all []report.Change) func(i int, from string, c git.Change) error {
	return func(i int, from string, c git.Change) (err error) {
		of := &all[i]
		if strings.HasPrefix(c.Path, roles.Verifier.Reports+"/") { // in the transcripts
			return nil
		}
		of.From = from
		if len(of.Files) == maxFiles {
			of.More++
			return nil
		}
		h.left -= c.Size()
		f := report.FileChange{Path: h.s.In.Safe.Line(c.Path), Note: c.Note, Unread: h.room <= 0 || h.left < 0}
		if !f.Unread {
			f.Diff, f.Note, err = diffOf(h.s, c)
			h.room -= len(f.Diff)
		}
		of.Files = append(of.Files, f)
		return err
	}
}

// readSettings adds the spec, the settings of setupKeys, and advice for a failed phase.
func readSettings(s *project.Project, p *report.Page) {
	specs := s.Specs()
	this, _ := specs.Phase(p.Phase)
	p.Spec = s.In.Safe.String(this.Text)
	put := func(name, value string) {
		if value != "" && value != "0" {
			p.Setup = append(p.Setup, [2]string{name, s.In.Safe.Line(value)})
		}
	}
	for _, l := range s.Conf.Lines() {
		if slices.Contains(strings.Fields(setupKeys), l.Key) ||
			strings.HasPrefix(l.Key, "app.services.") && !strings.Contains(l.Key, ".env.") {
			put(l.Key, l.Value)
		}
	}
	put("toolchain", strings.Join(s.Conf.Toolchain.Names(), ", "))
	put("budget", s.BudgetText(p.Phase))
	if r := p.Record; r != nil && r.Verdict == audit.Fail {
		p.Advice = orchestrator.Advice(p.Phase, r.Entries, specs.UpTo(p.Phase))
	}
}

// setupKeys are the settings that a page shows. It also shows the services of the app.
const setupKeys = "app.kind app.command app.port app.prepare app.ready.path app.ready.timeout " +
	"agent.builder agent.verifier models.builder models.verifier loop.max_verifier_iterations loop.call_timeout " +
	"limits.memory limits.cpus limits.disk " +
	"network.allow verify.evidence verify.strength_time"

// readLedger adds up the usage of the phase and of each of its calls.
func readLedger(s *project.Project, p *report.Page) error {
	rows, err := s.Rows(p.Phase)
	all, by := s.Totals(), map[string]*ledger.Totals{}
	for _, row := range rows {
		row = row.Map(s.In.Safe.Redact)
		if by[row.CallID] == nil {
			by[row.CallID] = new(s.Totals())
		}
		all.Add(row)
		by[row.CallID].Add(row)
	}
	for i, t := range p.Turns {
		if of := by[t.Key]; of != nil {
			p.Turns[i].Used = of.Account().All
		}
	}
	p.Spent = all.Account()
	return err
}

// readCalls reads the transcripts of the calls on this machine, the newest first. It includes calls of an
// iteration without a verdict.
func readCalls(s *project.Project, p *report.Page) error {
	calls, err := s.Calls()
	calls = slices.DeleteFunc(calls, func(c project.Call) bool { return c.Phase != p.Phase })
	for _, c := range calls {
		if !slices.ContainsFunc(p.Turns, func(t report.Turn) bool { return t.Key == c.Key }) {
			o := c.Outcome
			call := audit.Call{
				Key:     c.Key,
				Role:    c.Role.Name,
				Attempt: c.Attempt,
				Class:   string(o.Class),
				Reason:  o.Reason,
				Started: o.Started,
				Ended:   o.Ended,
			}
			err = errors.Join(err, s.In.Safe.Clean(&call))
			p.Turns = append(p.Turns, report.Turn{Call: call, Step: c.Step})
		}
	}
	room := maxTranscript
	for _, c := range slices.Backward(calls) {
		t := &p.Turns[slices.IndexFunc(p.Turns, func(t report.Turn) bool { return t.Key == c.Key })]
		t.Here = true
		if room <= 0 {
			t.Said = []agent.Message{{Kind: agent.Said, Text: "Left out, the page is too large: " + s.Paths.Rel(c.Dir)}}
			continue
		}
		used := 0
		size := func(m agent.Message) int { return 64 + len(m.Text) + len(m.Detail) }
		if err := s.Transcript(c, func(m agent.Message) {
			m.Text, m.Detail = s.In.Safe.Redact(m.Text), s.In.Safe.Redact(m.Detail)
			for t.Said, used = append(t.Said, m), used+size(m); used > room && len(t.Said) > 1; t.Left++ {
				used -= size(t.Said[0])
				t.Said = t.Said[1:]
			}
		}); err != nil {
			s.In.Warn(err)
		}
		room -= used
	}
	return err
}

// diffOf returns a file's diff without its header, and its note.
func diffOf(s *project.Project, c git.Change) (diff, note string, err error) {
	text, err := c.Texts()
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	err = showDiff(s.In, &b, c.Path, text, false)
	lines := append(strings.SplitN(b.String(), "\n", 4), "", "", "")
	return lines[3], cmp.Or(text.Note, c.Note), err
}

// reportPage writes the page of phase n, or for 0 of the phase that was judged last. A path of "-" is
// standard output.
func reportPage(ctx context.Context, s *project.Project, n int, path string, open bool, all []audit.Record) error {
	if len(all) == 0 {
		return cli.WithHint("abl phase 1", "no phase has a verdict yet")
	}
	if n == 0 {
		n = slices.MaxFunc(all, func(a, b audit.Record) int { return a.Decided.Compare(b.Decided) }).Phase
	}
	if path = cmp.Or(path, pagePath(s, n)); path != "-" {
		if err := writable(s, path); err != nil {
			return exit.With(exit.Usage, fmt.Errorf("cannot write the page: %w", err), "")
		}
	}
	r, err := reportOf(ctx, s, n)
	if err != nil {
		return err
	}
	if path == "-" {
		data, err := pageOf(ctx, s, r)
		if err != nil {
			return err
		}
		_, err = s.In.Result.Write(data)
		return err
	}
	if err := writePage(ctx, s, r, path); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(s.In.Stdout, path); err != nil || !open {
		return err
	}
	return browse(ctx, path)
}

// browse opens a file in the user's browser. It returns when the program ends, or after a second.
func browse(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	program := cmp.Or(os.Getenv("BROWSER"), map[string]string{"darwin": "open"}[runtime.GOOS], "xdg-open")
	cmd := proc.Command(context.WithoutCancel(ctx), program, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C does not end the browser
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		select {
		case <-proc.Wait(cmd):
			if code := proc.Code(cmd); code != 0 {
				err = fmt.Errorf("%s ended with exit code %d", program, code)
			}
		case <-time.After(time.Second):
		}
	}
	if err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot open the page: %w", err),
			"set BROWSER to a program that opens "+path)
	}
	return nil
}
