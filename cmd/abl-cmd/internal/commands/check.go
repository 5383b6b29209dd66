//go:build linux

package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/spec"
)

const (
	maxScript  = 1 << 20
	maxReports = 10000
	failed     = "failed_specs.md"
	script     = "run.sh"
)

// findings are what check has to say.
type findings struct {
	missing []string // has to be left behind and is not
	wrong   []string // is there, and abl would not believe it or not pass it on
	notes   []string // decides nothing
}

func (f *findings) miss(format string, args ...any) {
	f.missing = append(f.missing, fmt.Sprintf(format, args...))
}

func (f *findings) mend(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

func (f *findings) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// check says what this call still has to leave behind. For the Verifier it runs
// the suite: what files are called proves nothing.
func (t Tool) check(ctx context.Context) int {
	var files findings
	t.checkReport(&files)
	if t.Spec.Role != "verifier" {
		t.noteHealth(&files)
		t.tell(files)
		return t.conclude(files)
	}
	work := t.read()
	entries := t.checkFailed(work, &files)
	ready := t.checkScript(work, &files)
	t.tell(files) // before the suite: whoever stops a long one has seen this
	var suite findings
	if ready {
		t.checkSuite(ctx, work, entries, &suite)
		t.tell(suite)
	}
	return t.conclude(files, suite)
}

func (t Tool) tell(f findings) {
	for _, m := range f.missing {
		fmt.Fprintln(t.Out, "missing:", m)
	}
	for _, w := range f.wrong {
		fmt.Fprintln(t.Out, "wrong:", w)
	}
	for _, n := range f.notes {
		fmt.Fprintln(t.Out, "note:", n)
	}
}

func (t Tool) conclude(all ...findings) int {
	for _, f := range all {
		if len(f.missing)+len(f.wrong) > 0 {
			return exitMissing
		}
	}
	fmt.Fprintln(t.Out, "ok: nothing is missing")
	return exitOK
}

// checkReport looks for the run report of this very call.
func (t Tool) checkReport(f *findings) {
	dir := t.Spec.Role + "_reports"
	entries, err := hostfs.List(t.Spec.Dir, dir, maxReports)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		f.mend("%v", err)
		return
	}
	now := map[string]int64{}
	for _, e := range entries {
		if e.Size > 0 {
			now[e.Name] = e.Mod.UnixNano()
		}
	}
	if helper.FreshReport(t.Spec.Phase, t.Spec.Iteration, t.Spec.Reports, now) == "" {
		f.miss("the run report of this call, %s/phase%d_v%d_<time>.md", dir, t.Spec.Phase, t.Spec.Iteration)
	}
}

// checkScript looks at run.sh without running it, and says whether it can be run.
func (t Tool) checkScript(w workspace, f *findings) (ready bool) {
	data, err := hostfs.Read(t.Spec.Dir, script, maxScript)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		f.miss("%s, which replays every saved test and prints TAP", script)
		return false
	case err != nil:
		f.mend("%v", err)
		return false
	}
	ready = true
	if info, err := os.Lstat(filepath.Join(t.Spec.Dir, script)); err != nil || info.Mode()&0o100 == 0 {
		f.mend("%s is not executable: chmod +x %s", script, script)
		ready = false
	}
	if !bytes.HasPrefix(data, []byte("#!")) {
		f.mend("%s does not begin with #!, as #!/bin/sh", script)
		ready = false
	}
	for _, c := range w.unnamed() {
		f.note("no test file names %s: %s", c.ID, c.Says())
	}
	return ready
}

// noteHealth reminds the Builder of the checks that it is to keep green.
func (t Tool) noteHealth(f *findings) {
	for _, c := range t.Spec.Commands {
		if c.Name == "health_check" {
			f.note("run abl-cmd health_check as the last thing; it must exit 0")
		}
	}
}

// workspace is what check reads of the Verifier's workspace and the specs.
type workspace struct {
	specs     []spec.Spec // of phases 1 to now
	contracts failedspecs.Contracts
	tests     []byte   // content of the test files
	names     []string // by which they and their tests are known
}

func (t Tool) read() workspace {
	set, _ := spec.LoadDir(t.Spec.Specs)
	w := workspace{specs: set.UpTo(t.Spec.Phase)}
	w.contracts = failedspecs.In(w.specs)
	w.tests, w.names = tests(t.Spec.Dir)
	return w
}
