package commands

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"abl/internal/safefile"
	"abl/orchestrator/dirs"
	"abl/orchestrator/spec"
	"abl/orchestrator/verdict"
)

const (
	maxScript  = 1 << 20
	maxReports = 10000
	failed     = "failed_specs.md"
	script     = "run.sh"
)

// check says what this call still has to leave behind, as far as files show it.
func (t Tool) check() int {
	var missing, notes []string
	add := func(problems []string) { missing = append(missing, problems...) }
	add(t.checkReport())
	if t.Spec.Role == "verifier" {
		add(t.checkFailed())
		problems, remarks := t.checkScript()
		add(problems)
		notes = remarks
	} else {
		notes = t.healthNotes()
	}
	for _, m := range missing {
		fmt.Fprintln(t.Out, "missing:", m)
	}
	for _, n := range notes {
		fmt.Fprintln(t.Out, "note:", n)
	}
	if len(missing) > 0 {
		return exitMissing
	}
	fmt.Fprintln(t.Out, "ok: nothing is missing")
	return exitOK
}

// checkReport looks for the run report of this very call.
func (t Tool) checkReport() []string {
	dir := t.Spec.Role + "_reports"
	entries, err := safefile.List(t.Spec.Dir, dir, maxReports)
	if err != nil && !errors.Is(err, safefile.ErrAbsent) {
		return []string{err.Error()}
	}
	now := map[string]int64{}
	for _, e := range entries {
		if e.Size > 0 {
			now[e.Name] = e.Mod.UnixNano()
		}
	}
	if dirs.FreshReport(t.Spec.Phase, t.Spec.Iteration, t.Spec.Reports, now) != "" {
		return nil
	}
	return []string{fmt.Sprintf("the run report of this call, %s/phase%d_v%d_<time>.md", dir, t.Spec.Phase, t.Spec.Iteration)}
}

// checkFailed reads failed_specs.md as abl will read it.
func (t Tool) checkFailed() []string {
	data, err := safefile.Read(t.Spec.Dir, failed, verdict.MaxBytes)
	if errors.Is(err, safefile.ErrAbsent) {
		return nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	result := verdict.Parse(data)
	var problems []string
	for _, p := range result.Problems {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", failed, p.Line, p.Text))
	}
	if result.Kind == verdict.Malformed && len(problems) == 0 {
		problems = append(problems, failed+": no entry can be read")
	}
	return problems
}

// checkScript looks at run.sh without running it. That it names a contract is
// no proof that it tests it, and it may put the names together, so contracts
// that are not named anywhere are notes.
func (t Tool) checkScript() (missing, notes []string) {
	data, err := safefile.Read(t.Spec.Dir, script, maxScript)
	switch {
	case errors.Is(err, safefile.ErrAbsent):
		return []string{script + ", which replays every saved test and prints TAP"}, nil
	case err != nil:
		return []string{err.Error()}, nil
	}
	if info, err := os.Lstat(filepath.Join(t.Spec.Dir, script)); err != nil || info.Mode()&0o100 == 0 {
		missing = append(missing, script+" is not executable: chmod +x "+script)
	}
	if !bytes.HasPrefix(data, []byte("#!")) {
		missing = append(missing, script+" does not begin with #!, as #!/bin/sh")
	}
	return missing, t.unnamed()
}

// unnamed lists the contracts whose id stands in no test file.
func (t Tool) unnamed() []string {
	set, _ := spec.LoadDir(t.Spec.Specs)
	all := tests(t.Spec.Dir)
	var notes []string
	for _, s := range set.UpTo(t.Spec.Phase) {
		for _, c := range s.Contracts {
			if !regexp.MustCompile(regexp.QuoteMeta(c.ID) + `\b`).Match(all) {
				notes = append(notes, "no test file names "+c.ID+": "+c.Action+" → "+c.Result)
			}
		}
	}
	return notes
}

// healthNotes reminds the Builder of the checks that it is to keep green.
func (t Tool) healthNotes() []string {
	for _, c := range t.Spec.Commands {
		if c.Name == "health_check" {
			return []string{"run abl-cmd health_check as the last thing; it must exit 0"}
		}
	}
	return nil
}
