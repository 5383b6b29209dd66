//go:build linux

package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// findings are what check has to say, by kind, in the order in which it is told.
type findings map[string][]string

const (
	missing = "missing" // has to be left behind and is not
	wrong   = "wrong"   // is there, and abl would not believe it or not pass it on
	note    = "note"    // decides nothing
)

func (f findings) add(kind, format string, args ...any) {
	f[kind] = append(f[kind], fmt.Sprintf(format, args...))
}

// check says what this call still has to leave behind. For the Verifier it runs
// the suite: what files are called proves nothing.
func (t tool) check(ctx context.Context) int {
	found := findings{}
	t.checkReport(found)
	if t.Role != "verifier" {
		t.noteHealth(found)
		return t.conclude(t.tell(found))
	}
	work := t.read()
	entries := t.checkFailed(work, found)
	ready := t.checkScript(found)
	bad := t.tell(found) // before the suite: whoever stops a long one has seen this
	if ready {
		found = findings{}
		t.checkSuite(ctx, work, entries, found)
		bad = t.tell(found) || bad
	}
	return t.conclude(bad)
}

// tell prints findings and says whether any of them is to be mended.
func (t tool) tell(f findings) bool {
	for _, kind := range []string{missing, wrong, note} {
		for _, text := range f[kind] {
			fmt.Fprintf(os.Stdout, "%s: %s\n", kind, text)
		}
	}
	return len(f[missing])+len(f[wrong]) > 0
}

func (t tool) conclude(bad bool) int {
	if bad {
		return exitMissing
	}
	fmt.Fprintln(os.Stdout, "ok: nothing is missing")
	return exitOK
}

// checkReport looks for the run report of this very call.
func (t tool) checkReport(f findings) {
	dir := t.Role + "_reports"
	entries, err := hostfs.List(t.Dir, dir, maxReports)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		f.add(wrong, "%v", err)
		return
	}
	now := map[string]int64{}
	for _, e := range entries {
		if e.Size > 0 {
			now[e.Name] = e.Mod.UnixNano()
		}
	}
	if helper.FreshReport(t.Phase, t.Iteration, t.Reports, now) == "" {
		f.add(missing, "the run report of this call, %s/phase%d_v%d_<time>.md", dir, t.Phase, t.Iteration)
	}
}

// checkScript looks at run.sh without running it, and says whether it can be run.
func (t tool) checkScript(f findings) (ready bool) {
	data, err := hostfs.Read(t.Dir, script, maxScript)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		f.add(missing, "%s, which replays every saved test and prints TAP", script)
		return false
	case err != nil:
		f.add(wrong, "%v", err)
		return false
	}
	ready = true
	if info, err := os.Lstat(filepath.Join(t.Dir, script)); err != nil || info.Mode()&0o100 == 0 {
		f.add(wrong, "%s is not executable: chmod +x %s", script, script)
		ready = false
	}
	if !bytes.HasPrefix(data, []byte("#!")) {
		f.add(wrong, "%s does not begin with #!, as #!/bin/sh", script)
		ready = false
	}
	return ready
}

// noteHealth reminds the Builder of the checks that it is to keep green.
func (t tool) noteHealth(f findings) {
	for _, c := range t.Commands {
		if c.Name == "health_check" {
			f.add(note, "run abl-cmd health_check as the last thing; it must exit 0")
		}
	}
}

// workspace is what check reads of the Verifier's workspace and the specs.
type workspace struct {
	specs     []spec.Spec // of phases 1 to now
	contracts failedspecs.Contracts
	names     []string // by which the test files and their tests are known
}

func (t tool) read() workspace {
	set, _ := spec.LoadDir(t.Specs)
	w := workspace{specs: set.UpTo(t.Phase)}
	w.contracts = failedspecs.In(w.specs)
	w.names = testNames(t.Dir)
	return w
}

// checkFailed reads failed_specs.md as abl will read it, and returns its entries.
func (t tool) checkFailed(w workspace, f findings) []failedspecs.Entry {
	data, err := hostfs.Read(t.Dir, failed, failedspecs.MaxBytes)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		f.add(wrong, "%v", err)
		return nil
	}
	result := w.contracts.Name(failedspecs.Parse(data))
	for _, p := range result.Problems {
		kind := wrong
		if strings.HasPrefix(p.Text, "the entry has no ") {
			kind = missing
		}
		f.add(kind, "%s:%d: %s", failed, p.Line, p.Text)
	}
	for _, line := range result.Fenced {
		f.add(wrong, "%s:%d: a code block in an entry: write the value in one line, behind its label", failed, line)
	}
	_, left := failedspecs.NewFilter(w.specs, w.names).Pass(result.Entries)
	for _, p := range left {
		f.add(wrong, "%s:%d: %s: say it in the words of the specs", failed, p.Line, p.Text)
	}
	return result.Entries
}

const maxTestFiles = 2000

// testNames are those by which the test files below dir and their tests are known;
// reports and what a package manager put there are no tests.
func testNames(dir string) (names []string) {
	files := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules" || strings.HasSuffix(e.Name(), "_reports")):
			return filepath.SkipDir
		case !e.Type().IsRegular() || e.Name() == failed:
			return nil
		}
		if files++; files > maxTestFiles {
			return filepath.SkipAll
		}
		rel := strings.TrimPrefix(path, dir+"/")
		data, _ := hostfs.Read(dir, rel, maxScript) // without it, the file's own names are known
		names = append(names, failedspecs.NamesIn(rel, data)...)
		return nil
	})
	return names
}
