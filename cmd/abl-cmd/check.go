//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/spec"
	"abl/internal/tap"
)

const (
	maxScript    = 1 << 20
	maxTestFiles = 2000
	failed       = failedspecs.FileName
	script       = "run.sh"
	appURL       = "ABL_APP_URL"
	// suiteLimit is how long a suite may take in check.
	suiteLimit = 5 * time.Minute
	// pipeGrace is how long check waits for the output of a suite that has ended, if a process that
	// it started still has the pipe open.
	pipeGrace = 2 * time.Second
)

// findings are the results of check, by kind.
type findings map[string][]string

const (
	missing = "missing" // a required file does not exist
	wrong   = "wrong"   // abl would not accept a file, or not pass it on
	note    = "note"    // a remark
)

func (f findings) add(kind, format string, args ...any) {
	f[kind] = append(f[kind], fmt.Sprintf(format, args...))
}

// print prints the findings and reports whether the role must fix any of them.
func (f findings) print() bool {
	for _, kind := range []string{missing, wrong, note} {
		for _, text := range f[kind] {
			fmt.Printf("%s: %s\n", kind, text)
		}
	}
	return len(f[missing])+len(f[wrong]) > 0
}

// check prints what this call still has to write. For the Verifier it also runs the suite.
func (t tool) check(ctx context.Context) int {
	found := findings{}
	if helper.FreshReport(t.Phase, t.Iteration, t.Reports, helper.ReportsIn(t.Dir, t.Role+"_reports")) == "" {
		found.add(missing, "the run report of this call, %s_reports/phase%d_v%d_<time>.md", t.Role, t.Phase, t.Iteration)
	}
	var bad bool
	if t.Role == "verifier" {
		set, _ := spec.LoadDir(t.Specs)
		contracts := failedspecs.In(set.UpTo(t.Phase))
		entries := t.checkFailed(set.UpTo(t.Phase), contracts, found)
		ready := t.checkScript(found)
		bad = found.print() // before the suite, which may take long
		found = findings{}
		if ready {
			t.checkSuite(ctx, contracts, entries, found)
		}
	} else if slices.ContainsFunc(t.Commands, func(c helper.Command) bool { return c.Name == "health_check" }) {
		found.add(note, "run abl-cmd health_check last; it must exit with 0")
	}
	if found.print() || bad {
		return exitMissing
	}
	fmt.Println("ok: nothing is missing")
	return exitOK
}

// checkScript checks run.sh without running it. It returns true if it can be run.
func (t tool) checkScript(f findings) (ready bool) {
	data, err := hostfs.Read(t.Dir, script, maxScript)
	info, gone := os.Lstat(filepath.Join(t.Dir, script))
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		f.add(missing, "%s, which replays every saved test and prints TAP", script)
	case err != nil:
		f.add(wrong, "%v", err)
	case gone != nil || info.Mode()&0o100 == 0 || !bytes.HasPrefix(data, []byte("#!")):
		f.add(wrong, "%s must be executable (chmod +x %s) and begin with #!, such as #!/bin/sh", script, script)
	default:
		return true
	}
	return false
}

// checkFailed reads failed_specs.md as abl does, and returns its entries.
func (t tool) checkFailed(specs []spec.Spec, contracts failedspecs.Contracts, f findings) []failedspecs.Entry {
	data, err := hostfs.Read(t.Dir, failed, failedspecs.MaxBytes)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		f.add(wrong, "%v", err)
		return nil
	}
	result := contracts.Name(failedspecs.Parse(data))
	for _, p := range result.Problems {
		kind := wrong
		if strings.HasPrefix(p.Text, "the entry has no ") {
			kind = missing
		}
		f.add(kind, "%s:%d: %s", failed, p.Line, p.Text)
	}
	for _, line := range result.Fenced {
		f.add(wrong, "%s:%d: an entry contains a code block: write the value on one line, after its label", failed, line)
	}
	_, left := failedspecs.NewFilter(specs, testNames(t.Dir)).Pass(result.Entries)
	for _, p := range left {
		f.add(wrong, "%s:%d: %s: use the text of the specs", failed, p.Line, p.Text)
	}
	return result.Entries
}

// testNames returns the names of the test files below dir and of their tests. It skips reports and
// the folders of package managers.
func testNames(dir string) []string {
	var paths []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules" || strings.HasSuffix(e.Name(), "_reports")):
			return filepath.SkipDir
		case !e.Type().IsRegular() || e.Name() == failed:
			return nil
		case len(paths) == maxTestFiles:
			return filepath.SkipAll
		}
		paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		return nil
	})
	return failedspecs.Names(paths, func(path string) []byte {
		data, _ := hostfs.Read(dir, path, failedspecs.MaxTest) // without it, the file's own names are known
		return data
	})
}

// checkSuite runs run.sh and compares its output with the contracts and failed_specs.md.
func (t tool) checkSuite(
	ctx context.Context, contracts failedspecs.Contracts, entries []failedspecs.Entry, f findings,
) {
	if os.Getenv(appURL) == "" && t.App == nil {
		f.add(note, "%s was not run because %s is not set: abl-cmd did not check whether every contract has a test", script,
			appURL)
		return
	}
	doc := t.runSuite(ctx, f)
	for _, id := range contracts.IDs() {
		says, _ := contracts.Says(id)
		claimed := 0 // the line of the first entry that says that it fails
		if i := slices.IndexFunc(entries, func(e failedspecs.Entry) bool { return e.Contract == id }); i >= 0 {
			claimed = entries[i].Line
		}
		switch r := doc.Of(id); {
		case r.Status == tap.Missing:
			f.add(missing, "a line of %s for %s: %s (%s)", script, id, says, r.Why)
		case r.Status == tap.Twice, r.Status == tap.Void:
			f.add(wrong, "%s does not test %s: %s", script, id, r.Why)
		case r.Status == tap.NotOK && claimed == 0:
			f.add(missing, "an entry in %s for %s, which is not ok in %s: %s", failed, id, script, says)
		case r.Status == tap.OK && claimed > 0:
			f.add(wrong, "%s:%d says that %s fails, but %s reports ok: correct one of them",
				failed, claimed, id, script)
		}
	}
	known := func(id string) bool { _, ok := contracts.Says(id); return ok }
	for _, p := range doc.Strange(known) {
		if len(p.IDs) > 0 {
			f.add(wrong, "line %d of %s's output names %s, which is not a contract of phases 1 to %d",
				p.Line, script, p.IDs[0], contracts.Phases())
		} else if p.OK {
			f.add(note, "line %d of %s's output is ok and does not name a contract", p.Line, script)
		}
	}
}

// runSuite runs run.sh as a replay does, without the keys of the agent and with an empty standard
// input. It passes standard error on to the Verifier, and reports problems of the output as a
// whole.
func (t tool) runSuite(ctx context.Context, f findings) tap.Document {
	errLate := fmt.Errorf("%s did not end within %v and was stopped; only the output until then counts",
		script, suiteLimit)
	out := &proc.Head{Max: tap.MaxBytes + 1}
	cmd := proc.Command(context.WithoutCancel(ctx), filepath.Join(t.Dir, script)) // bounded stops all of it
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.Dir, out, os.Stderr
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, pipeGrace
	exit, err := bounded(ctx, cmd, suiteLimit, errLate)
	if cmd.Process != nil {
		proc.Kill(cmd.Process.Pid) // what it left behind
	}
	switch {
	case errors.Is(err, errLate):
		f.add(wrong, "%v", err)
	case err != nil:
		f.add(wrong, "cannot run %s: %v", script, err)
	}
	doc := tap.Parse(out.Kept.Bytes(), err == nil)
	for _, p := range doc.Problems {
		where, kind := fmt.Sprintf("line %d of %s's output", p.Line, script), note
		if p.Line == 0 {
			where = script + "'s output"
		}
		if p.Doubt {
			kind = wrong
		}
		f.add(kind, "%s: %s", where, p.Text)
	}
	bad := slices.ContainsFunc(doc.Points, func(p tap.Point) bool { return !p.OK })
	switch {
	case exit != 0 && !bad:
		f.add(wrong, "%s ended with exit code %d, but no line reports not ok", script, exit)
	case exit == 0 && bad:
		f.add(note, "%s ended with exit code 0, but a line reports not ok", script)
	}
	return doc
}
