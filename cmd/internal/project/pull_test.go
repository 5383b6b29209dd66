package project

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/roles"
)

// wantFiles compares the files that a pull wrote next to state.json and the workspaces.
func wantFiles(t *testing.T, s *Project, want string) {
	t.Helper()
	var got []string
	for _, dir := range []string{s.Paths.Logs(), s.Paths.Reports(), s.Paths.Specs()} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				got = append(got, s.Paths.Rel(path))
			}
			return nil
		})
		must(t, err)
	}
	if slices.Sort(got); strings.Join(got, " ") != want {
		t.Errorf("pull wrote %q, want %q", got, want)
	}
}

// TestPullOfAHostileState checks that a pull writes files of a repository only to their places, and
// that abl does not change their owner otherwise.
func TestPullOfAHostileState(t *testing.T) {
	const once = `"history": [{"round": 1, "iteration": 1, "step": 1, "verdict": "fail", "entries": 0,
		"when": "2026-01-02T03:04:05Z", "call": "p1-verify-1.1"}], "status"`
	for name, c := range map[string]struct {
		replace [2]string // in state.json
		file    string    // one more published file
		content string    // of file, a ledger's header by default
		link    string    // below .abl, to the folder "out" next to the project
		refused bool
	}{
		"a lease":               {replace: [2]string{`"phases"`, `"lease": {"../out": {}}, "phases"`}},
		"a call elsewhere":      {replace: [2]string{`"status"`, `"call": "../../../out", "status"`}, refused: true},
		"a branch elsewhere":    {replace: [2]string{`"phases"`, `"branch": "../../../out/key", "phases"`}},
		"a record of a call":    {file: "calls/p1-build-1.1/intent.json"},
		"a report at the top":   {file: "reports/pre-commit"},
		"a report of no step":   {file: "reports/phase1/key"},
		"a step to come":        {file: "reports/phase1/step-2.json"},
		"another case":          {file: "Reports/phase1/step-1.json"},
		"git's own":             {file: ".git/config"},
		"a file as a folder":    {file: "tokens.csv/x"},
		"reports behind a link": {file: "reports/phase1/step-1.json", link: "reports", refused: true},
		"a phase behind one":    {file: "reports/phase1/step-1.json", link: "reports/phase1", refused: true},
		"a call that never was": {file: "calls/p1-verify-1.2/finding.json"},
		"calls behind a link":   {replace: [2]string{`"status"`, once}, file: "calls/p1-verify-1.1/finding.json", link: "logs", refused: true},
		"a ledger behind one":   {file: "tokens.csv", link: "logs", refused: true},
		"another ledger":        {file: "tokens.csv", content: "=cmd()\n", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := published(t)
			x, err := s.exchange()
			must(t, err)
			files, err := x.repo.Kept(x.tip)
			must(t, err)
			if c.file != "" {
				files[c.file] = []byte(cmp.Or(c.content, ledger.Header+"\n"))
			}
			if c.replace[0] != "" {
				files[carriedState] = []byte(strings.Replace(string(files[carriedState]), c.replace[0], c.replace[1], 1))
			}
			_, err = x.repo.Keep(t.Context(), stateRef, x.tip, "hostile", files)
			must(t, err)
			must(t, os.Remove(s.Paths.State()))
			out := t.TempDir()
			if at := filepath.Join(s.Paths.Root, state.Dir, c.link); c.link != "" {
				must(t, os.RemoveAll(at))
				must(t, os.MkdirAll(filepath.Dir(at), 0o755))
				must(t, os.Symlink(out, at))
			}
			if _, err = s.Pull(t.Context(), false); (err != nil) != c.refused {
				t.Errorf("pull: got error %v, want one: %t", err, c.refused)
			}
			if left, _ := os.ReadDir(out); len(left) > 0 {
				t.Errorf("files written elsewhere: got %s, want none", left[0].Name())
			}
			if f, err := s.State(); err != nil || f.Owners != nil {
				t.Errorf("lease in state.json: got %v, error %v, want none", f.Owners, err)
			}
			if !c.refused {
				wantFiles(t, s, "")
			}
		})
	}
}

// passed returns a project whose phase 1 has passed, published with its audit record.
func passed(t *testing.T) *Project {
	t.Helper()
	s := published(t)
	x, err := s.exchange()
	must(t, err)
	tests, err := git.Open(s.Paths.Tests, git.Options{})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.Paths.Tests, "run.sh"), []byte("#!/bin/sh\n"), 0o755))
	snap, err := tests.Snapshot(t.Context(), git.Message{Subject: "tests"})
	must(t, err)
	src, err := git.Open(s.Paths.Src, s.SourceOptions())
	must(t, err)
	tip, _, err := src.Head()
	must(t, err)
	tree, err := src.TreeKey(tip.Hash, roles.Builder.Reports)
	must(t, err)
	call := roles.Key(1, roles.Verifier, 1, 1)
	p := &state.Phase{Status: state.Passed, Round: 1, Iteration: 1, Step: 1, Attempt: 1, Call: call, SrcCommit: tip.Hash, TestsCommit: snap.Commit.Hash}
	p.History = []state.IterationRecord{{
		Round: 1, Iteration: 1, Step: 1, Verdict: "pass", SrcCommit: tip.Hash, TestsCommit: snap.Commit.Hash, Call: call, Tree: tree,
	}}
	x.file.Phases["1"] = p
	must(t, state.Save(s.Paths.State(), x.file))
	must(t, audit.Save(s.Paths, audit.Record{
		Version: audit.Version, Project: x.file.Project, Phase: 1, Round: 1, Iteration: 1, Step: 1, Verdict: "pass", Status: "passed",
		Commits: audit.Commits{Source: tip.Hash, Tests: snap.Commit.Hash, Tag: "phase1/passed"},
	}))
	must(t, roles.Record{Dir: s.Paths.Call(call)}.Write(roles.FindingFile, map[string]string{"verdict": "pass"}))
	_, err = ledger.Open(s.Paths.Ledger()).Append([]ledger.Row{{Phase: "1", Model: "m", CallID: "p1-build-1.1"}})
	must(t, err)
	_, err = s.Publish(t.Context(), 0)
	must(t, err)
	return s
}

// republish publishes changed files, like a user with push rights, and leaves a clone without a state.
func republish(t *testing.T, s *Project, change func(files map[string][]byte)) {
	t.Helper()
	x, err := s.exchange()
	must(t, err)
	files, err := x.repo.Kept(x.tip)
	must(t, err)
	change(files)
	_, err = x.repo.Keep(t.Context(), stateRef, x.tip, "hostile", files)
	must(t, err)
	for _, dir := range []string{s.Paths.State(), s.Paths.Logs(), s.Paths.Reports(), s.Paths.Src, s.Paths.Tests} {
		must(t, os.RemoveAll(dir))
	}
}

// edit changes a JSON document.
func edit[T any](t *testing.T, data []byte, change func(*T)) []byte {
	t.Helper()
	v := new(T)
	must(t, json.Unmarshal(data, v))
	change(v)
	data, err := json.MarshalIndent(v, "", "  ")
	must(t, err)
	return data
}

// TestPullBelievesAPass checks that a pass counts only if its commits, its tree and its audit record
// match. Otherwise pull names the mismatch and writes nothing.
func TestPullBelievesAPass(t *testing.T) {
	const at, none = "reports/phase1/step-1.json", "abababababababababababababababababababab"
	for name, c := range map[string]struct {
		state  func(p *state.Phase, main string)
		record func(r *audit.Record)
		want   string // part of the error, may be ""
	}{
		"as published":            {},
		"stale":                   {state: func(p *state.Phase, _ string) { p.Status = state.Stale }},
		"a source that is gone":   {state: func(p *state.Phase, _ string) { p.SrcCommit = none }, want: `its commit "ababab`},
		"tests that are gone":     {state: func(p *state.Phase, _ string) { p.TestsCommit = none }, want: `its commit "ababab`},
		"no source":               {state: func(p *state.Phase, _ string) { p.SrcCommit = "" }, want: `its commit ""`},
		"stale without tests":     {state: func(p *state.Phase, _ string) { p.Status, p.TestsCommit = state.Stale, "" }, want: `its commit ""`},
		"a source before it":      {state: func(p *state.Phase, main string) { p.SrcCommit = main }, want: "does not match its phase, step, verdict or commits"},
		"another tree":            {state: func(p *state.Phase, _ string) { p.History[0].Tree = none }, want: "its tree is not"},
		"no history":              {state: func(p *state.Phase, _ string) { p.History = nil }, want: "its history is empty"},
		"a record of a fail":      {record: func(r *audit.Record) { r.Verdict = "fail" }, want: "does not match its phase, step, verdict or commits"},
		"a record of other tests": {record: func(r *audit.Record) { r.Commits.Tests = none }, want: "does not match its phase, step, verdict or commits"},
		"a record of phase 2":     {record: func(r *audit.Record) { r.Phase = 2 }, want: "does not match its phase, step, verdict or commits"},
		"no record":               {state: func(p *state.Phase, _ string) { p.Step = 2 }, want: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := passed(t)
			main := runGit(t, s.Paths.Root, "rev-parse", "main")
			republish(t, s, func(files map[string][]byte) {
				if c.state != nil {
					files[carriedState] = edit(t, files[carriedState], func(f *state.File) { c.state(f.Phases["1"], main) })
				}
				if c.record != nil {
					files[at] = edit(t, files[at], c.record)
				}
			})
			_, err := s.Pull(t.Context(), false)
			if got := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(got, c.want) {
				t.Errorf("pull says %s, want %q", got, c.want)
			}
			if c.want == "" {
				wantFiles(t, s, ".abl/logs/calls/p1-verify-1.1/finding.json .abl/logs/tokens.csv .abl/reports/phase1/step-1.json")
				return
			}
			wantFiles(t, s, "")
			for _, path := range []string{s.Paths.State(), s.Paths.Src, s.Paths.Tests} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("after a refused pull: got %s, want it missing", path)
				}
			}
		})
	}
}

// TestPullBelievesNoPassWithoutARound checks that a phase that never began cannot have passed.
func TestPullBelievesNoPassWithoutARound(t *testing.T) {
	for _, status := range []state.Status{state.Passed, state.Stale} {
		t.Run(string(status), func(t *testing.T) {
			s := passed(t)
			republish(t, s, func(files map[string][]byte) {
				files[carriedState] = edit(t, files[carriedState], func(f *state.File) { f.Phases["2"] = &state.Phase{Status: status} })
			})
			const want = `phase 2 is %s there, but its commit ""`
			_, err := s.Pull(t.Context(), false)
			if got := fmt.Sprint(err); !strings.Contains(got, fmt.Sprintf(want, status)) {
				t.Errorf("pull says %s, want "+want, got, status)
			}
			if f, err := s.State(); err != nil || f.Phase(2).Status != state.Ready {
				t.Errorf("status of phase 2: got %s, error %v, want %s", f.Phase(2).Status, err, state.Ready)
			}
		})
	}
}

// TestPullTheirsIsRefused checks that a refused state moves nothing away.
func TestPullTheirsIsRefused(t *testing.T) {
	s := passed(t)
	before := read(t, s.Paths.State())
	x, err := s.exchange()
	must(t, err)
	files, err := x.repo.Kept(x.tip)
	must(t, err)
	files[carriedState] = edit(t, files[carriedState], func(f *state.File) { f.Phases["1"].SrcCommit = "" })
	_, err = x.repo.Keep(t.Context(), stateRef, x.tip, "hostile", files)
	must(t, err)
	if text, err := s.Pull(t.Context(), true); err == nil {
		t.Errorf("pull --theirs: got %q and no error, want an error", text)
	}
	if after := read(t, s.Paths.State()); after != before {
		t.Errorf("state.json: got\n%s\nwant\n%s", after, before)
	}
}

// TestPullDrawsNoVerdict checks that a pull does not write a finding on a call that abl has not judged
// yet.
func TestPullDrawsNoVerdict(t *testing.T) {
	s := passed(t)
	republish(t, s, func(files map[string][]byte) {
		files[carriedState] = edit(t, files[carriedState], func(f *state.File) { f.Phases["1"].Status = state.Verified })
	})
	_, err := s.Pull(t.Context(), false)
	must(t, err)
	wantFiles(t, s, ".abl/logs/tokens.csv .abl/reports/phase1/step-1.json")
}

// TestPullNeutralizes checks that no pulled file runs in a spreadsheet or steers a terminal.
func TestPullNeutralizes(t *testing.T) {
	s := passed(t)
	row := func(cells ...string) string {
		return strings.Join(append(cells, slices.Repeat([]string{""}, 18-len(cells))...), ",") + "\n"
	}
	republish(t, s, func(files map[string][]byte) {
		files[carriedLedger] = []byte(ledger.Header + "\r\n" + row("", "1", "1", "=cmd()", "\"\t@SUM(1)\"", "5") +
			row("", "1", "1", "\x1b]0;x\a", "\u202em", "+1") + "=cmd(),-1\n" + "a,=cmd()\n")
		files["reports/phase1/step-1.json"] = append(files["reports/phase1/step-1.json"], " \x1b]0;x\a\u202e"...)
		files["calls/p1-verify-1.1/finding.json"] = []byte("{\"verdict\": \"\u009b2J\"}")
		files[carriedState] = edit(t, files[carriedState], func(f *state.File) { f.Phases["1"].Status = state.Refuted })
	})
	_, err := s.Pull(t.Context(), false)
	must(t, err)
	want := ledger.Header + "\n" + row("", "1", "1", "'=cmd()", "'@SUM(1)", "5") +
		"\",1,1,]0,x,m,+1" + strings.Repeat(",", 12) + "\"\n" + "\"'=cmd(),-1\"\n" + "\"a,=cmd()\"\n"
	if got := read(t, s.Paths.Ledger()); got != want {
		t.Errorf("tokens.csv is\n%s\nwant\n%s", got, want)
	}
	for _, path := range []string{audit.Path(s.Paths, 1, 1), filepath.Join(s.Paths.Call("p1-verify-1.1"), roles.FindingFile)} {
		if got := read(t, path); strings.ContainsAny(got, "\x1b\a\u009b\u202e") {
			t.Errorf("%s: got %q, want no control characters", s.Paths.Rel(path), got)
		}
	}
	if text, err := s.Pull(t.Context(), false); err != nil || !strings.HasPrefix(text, "nothing new") {
		t.Errorf("second pull: got %q, error %v, want %q", text, err, "nothing new")
	}
	if x, err := s.exchange(); err != nil || x.file.Published == "" {
		t.Error(err)
	} else if same, err := x.standsAt(x.tip); err != nil || !same {
		t.Errorf("project equals what was pulled: got %t, error %v, want true", same, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}
