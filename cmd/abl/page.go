package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/witness"
	"abl/orchestrator/report"
	"abl/roles/agent"
)

// pagePath is where the page of a phase stands.
func pagePath(s *phase.Project, n int) string { return audit.Dir(s.Paths, n) + ".html" }

// keepPage makes the page of a phase that ended with a verdict, beside its records, and
// returns where it is, "" for nowhere.
func keepPage(ctx context.Context, s *phase.Project, n int, ended error) string {
	if code := exit.Code(exit.Because(ctx, ended)); code != exit.Passed && code != exit.Stuck && code != exit.Unverified {
		return ""
	}
	if steps, err := audit.Steps(s.Paths, n); err != nil || len(steps) == 0 {
		return ""
	}
	if err := writePage(ctx, s, n, pagePath(s, n)); err != nil {
		s.In.Warn(err)
		return ""
	}
	return pagePath(s, n)
}

// writePage writes all that there is to see of phase n to one HTML file.
func writePage(ctx context.Context, s *phase.Project, n int, path string) error {
	data, err := pageOf(ctx, s, n)
	if err != nil {
		return err
	}
	unlock, err := s.Lock() // giving it back leaves the file the person's
	if err == nil {
		defer unlock()
	}
	if err := hostfs.Write(path, data, 0o644); err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot write the page: %w", err), "name a file that can be written: abl report --html FILE")
	}
	return nil
}

// pageOf makes the page of phase n of all that is on disk.
func pageOf(ctx context.Context, s *phase.Project, n int) ([]byte, error) {
	run, err := s.Told(ctx, n)
	if err != nil {
		return nil, err
	}
	p := report.Page{Run: run, Src: s.Paths.Rel(s.Paths.Src), Abl: version, Seen: map[int]map[string]witness.Exchange{}}
	records := run.Before
	if run.Record != nil {
		records = append(slices.Clone(records), *run.Record)
	}
	if err := readTurns(s, &p, records); err != nil {
		return nil, err
	}
	for _, r := range records {
		p.Seen[r.Step] = exchangesOf(s, r)
	}
	p.Changes, err = changesOf(ctx, s, n, records)
	if err != nil {
		p.Unknown = "What changed cannot be told: " + s.In.Safe.Line(strings.ReplaceAll(err.Error(), s.Paths.Root, "."))
	}
	var page bytes.Buffer
	err = report.HTML(&page, p)
	return page.Bytes(), err
}

// mostRead bounds what is read for a page that has room for less, in bytes.
const mostRead = 8 << 20

// readTurns reads what the calls of the phase said and used, the newest first.
func readTurns(s *phase.Project, p *report.Page, records []audit.Record) error {
	rows, err := s.Rows(p.Phase)
	if err != nil {
		return err
	}
	all, by := ledger.Totals{Price: s.CostOf}, map[string]*ledger.Totals{}
	for _, row := range rows {
		row = row.Map(s.In.Safe.Redact)
		all.Add(row)
		if by[row.CallID] == nil {
			by[row.CallID] = &ledger.Totals{Price: s.CostOf}
		}
		by[row.CallID].Add(row)
	}
	p.Spent = all.Account()
	add := func(c audit.Call, step int) {
		t := report.Turn{Call: c, Step: step}
		if of := by[c.Key]; of != nil {
			t.Used = of.Account().All
		}
		p.Turns = append(p.Turns, t)
	}
	for _, r := range records {
		for _, c := range r.Calls {
			add(c, r.Step)
		}
	}
	calls, err := s.Calls()
	room := mostRead
	for _, c := range slices.Backward(calls) {
		if c.Phase != p.Phase {
			continue
		}
		is := func(t report.Turn) bool { return t.Key == c.Key }
		if !slices.ContainsFunc(p.Turns, is) { // of an iteration that was not judged
			o := c.Outcome
			told := audit.Call{Key: c.Key, Role: c.Role.Name, Attempt: c.Attempt, Agent: c.Agent, Model: o.Model, Class: string(o.Class), Reason: o.Reason, Started: o.Started, Ended: o.Ended}
			if err := s.In.Safe.Clean(&told); err != nil {
				return err
			}
			add(told, c.Step)
		}
		t := &p.Turns[slices.IndexFunc(p.Turns, is)]
		t.Here = true
		if room <= 0 {
			t.Said = []agent.Message{{Kind: agent.Said, Text: "It stands in " + s.Paths.Rel(c.Dir) + ": this page has no room for it."}}
			continue
		}
		if terr := s.Transcript(c, func(m agent.Message) {
			m.Text, m.Detail = s.In.Safe.Redact(m.Text), s.In.Safe.Redact(m.Detail)
			room -= len(m.Text) + len(m.Detail)
			t.Said = append(t.Said, m)
		}); terr != nil {
			s.In.Warn(terr)
		}
	}
	return err
}

// exchangesOf are those that witnessed the contracts of a record, by what their findings say.
func exchangesOf(s *phase.Project, r audit.Record) map[string]witness.Exchange {
	all, wanted := map[string]witness.Exchange{}, map[string]bool{}
	for _, c := range r.Contracts {
		wanted[c.Witness] = true
	}
	for _, run := range r.Replays {
		dir := filepath.Join(run.Call, "replay-"+run.Name, "witness")
		if run.Against != "app" || strings.HasPrefix(run.Name, "altered-") || !filepath.IsLocal(dir) {
			continue
		}
		data, err := hostfs.Read(filepath.Join(s.Paths.Calls(), dir), "record", mostRead)
		if err != nil {
			continue // it is not here, or too much for a page
		}
		exchanges, err := witness.ReadRecord(bytes.NewReader(s.In.Safe.Bytes(data)))
		if err != nil {
			s.In.Warn(err)
		}
		for _, x := range exchanges {
			words := fmt.Sprintf("%s → %d", x.Request(), x.Status)
			if _, known := all[words]; wanted[words] && !known {
				x.Sent.Begins, x.Got.Begins = s.In.Safe.Bytes(x.Sent.Begins), s.In.Safe.Bytes(x.Got.Begins)
				all[words] = x
			}
		}
	}
	return all
}

// changesOf is what each iteration changed in the source, without texts from where there are
// too many of them on.
func changesOf(ctx context.Context, s *phase.Project, n int, records []audit.Record) (all []report.Change, err error) {
	room := mostRead
	err = phase.StepChanges(ctx, s, n, records, func(r audit.Record, from string, changes func(func(git.Change) error) error) error {
		of := report.Change{Step: r.Step, From: from, To: r.Commits.Source}
		err := changes(func(c git.Change) error {
			f := report.FileChange{Path: s.In.Safe.Line(c.Path), Note: c.Note}
			if (c.Old != nil || c.New != nil) && room > 0 {
				var err error
				if f.Diff, err = diffOf(s, c); err != nil {
					return err
				}
				room -= len(f.Diff)
			}
			of.Files = append(of.Files, f)
			return nil
		})
		all = append(all, of)
		return err
	})
	slices.Reverse(all)
	return all, err
}

// diffOf is a file's diff behind the names.
func diffOf(s *phase.Project, c git.Change) (string, error) {
	for _, text := range []*string{c.Old, c.New} {
		if text != nil {
			*text = s.In.Safe.String(*text)
		}
	}
	var b strings.Builder
	err := view.Diff(&b, "file", c.Old, c.New, false)
	lines := strings.SplitN(b.String(), "\n", 4)
	if len(lines) < 4 {
		return "", err
	}
	return lines[3], err
}

// lastJudged is the phase of the record that was decided last, 0 for none.
func lastJudged(all []audit.Record) int {
	if len(all) == 0 {
		return 0
	}
	return slices.MaxFunc(all, func(a, b audit.Record) int { return a.Decided.Compare(b.Decided) }).Phase
}

// reportPage makes the page of phase n, or of the one that was judged last.
func reportPage(ctx context.Context, s *phase.Project, n int, path string, all []audit.Record) error {
	if n == 0 {
		n = lastJudged(all)
	}
	switch {
	case len(all) == 0 && n == 0:
		return exit.With(exit.Usage, errors.New("no iteration was judged yet"), "abl phase 1")
	case path == "-":
		data, err := pageOf(ctx, s, n)
		if err == nil {
			_, err = s.In.Result.Write(data)
		}
		return err
	case path == "":
		path = pagePath(s, n)
	}
	if err := writable(s, path); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot write the page: %w", err), exit.Hint(err))
	}
	if err := writePage(ctx, s, n, path); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.In.Stdout, path)
	return err
}
