//go:build linux

package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/proc"
	"abl/internal/witness"
)

const (
	// suiteLimit is how long a suite may take here. It is to end within minutes.
	suiteLimit = 5 * time.Minute
	// pipeGrace is how long the output of a suite that has ended is waited for,
	// when something that it started holds the pipe.
	pipeGrace = 2 * time.Second
	appURL    = "ABL_APP_URL"
)

// checkSuite runs run.sh and holds what it prints against the contracts and
// against failed_specs.md.
func (t tool) checkSuite(ctx context.Context, w workspace, entries []failedspecs.Entry, f findings) {
	if os.Getenv(appURL) == "" {
		f.add(note, "%s was not run, since %s is not set: whether every contract has a test is unchecked", script, appURL)
		return
	}
	run, err := t.runSuite(ctx)
	if err != nil {
		f.add(wrong, "%v", err)
	}
	doc := witness.Parse(run.out, err == nil && !run.cut)
	run.judge(doc, f)
	for _, id := range w.contracts.IDs() {
		says, _ := w.contracts.Says(id)
		r := doc.Of(id)
		switch claimed := claims(entries, id); {
		case r.Status == witness.Missing:
			f.add(missing, "a line of %s for %s: %s (%s)", script, id, says, r.Why)
		case r.Status == witness.Twice, r.Status == witness.Void:
			f.add(wrong, "%s says nothing about %s: %s", script, id, r.Why)
		case r.Status == witness.NotOK && claimed == 0:
			f.add(missing, "an entry in %s for %s, which is not ok in %s: %s", failed, id, script, says)
		case r.Status == witness.OK && claimed > 0:
			f.add(wrong, "%s:%d says that %s fails, and it is ok in %s: look again, and correct the one that is wrong", failed, claimed, id, script)
		}
	}
	known := func(id string) bool { _, ok := w.contracts.Says(id); return ok }
	for _, p := range doc.Strange(known) {
		if len(p.IDs) > 0 {
			f.add(wrong, "line %d of %s's output names %s, which is no contract of phases 1 to %d", p.Line, script, p.IDs[0], w.contracts.Phases())
		} else if p.OK {
			f.add(note, "line %d of %s's output is ok and names no contract", p.Line, script)
		}
	}
}

// claims is the line of the first entry that says that a contract fails, 0 for none.
func claims(entries []failedspecs.Entry, id string) int {
	for _, e := range entries {
		if e.Contract == id {
			return e.Line
		}
	}
	return 0
}

// suite is one run of run.sh.
type suite struct {
	out  []byte
	exit int
	cut  bool // it printed more than is read
}

// runSuite runs run.sh as a replay does: without the keys of the agent, and with
// nothing on standard input. What it says on standard error the Verifier sees.
func (t tool) runSuite(ctx context.Context) (s suite, err error) {
	errLate := fmt.Errorf("%s did not end within %v and was stopped: what it had printed by then is all that counts", script, suiteLimit)
	out := &capped{max: witness.MaxBytes + 1}
	cmd := proc.Command(context.WithoutCancel(ctx), filepath.Join(t.Dir, script)) // bounded stops all of it
	cmd.Dir = t.Dir
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = pipeGrace
	s.exit, err = bounded(ctx, cmd, suiteLimit, errLate)
	if cmd.Process != nil {
		proc.Kill(cmd.Process.Pid) // what it left behind
	}
	s.out, s.cut = out.data, len(out.data) > witness.MaxBytes
	if err != nil && !errors.Is(err, errLate) {
		err = fmt.Errorf("%s cannot be run: %w", script, err)
	}
	return s, err
}

// judge says what keeps the output as a whole from being believed.
func (s suite) judge(doc witness.Document, f findings) {
	for _, p := range doc.Problems {
		where := fmt.Sprintf("line %d of %s's output", p.Line, script)
		if p.Line == 0 {
			where = script + "'s output"
		}
		kind := note
		if p.Doubt {
			kind = wrong
		}
		f.add(kind, "%s: %s", where, p.Text)
	}
	bad := false
	for _, p := range doc.Points {
		bad = bad || !p.OK
	}
	switch {
	case s.exit != 0 && !bad:
		f.add(wrong, "%s ended with exit code %d, and no line says not ok", script, s.exit)
	case s.exit == 0 && bad:
		f.add(note, "%s ended with exit code 0, and a line says not ok", script)
	}
}

// capped keeps the beginning of what is written to it.
type capped struct {
	data []byte
	max  int
}

func (c *capped) Write(p []byte) (int, error) {
	c.data = append(c.data, p[:min(len(p), c.max-len(c.data))]...)
	return len(p), nil
}
