package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"abl/cmd/internal/cli"
	"abl/internal/state"
	"abl/roles"
)

// callLog is one call on disk.
type callLog struct {
	key       string
	dir       string
	role      string
	agent     string
	phase     int
	step      int
	attempt   int
	iteration int // 0 when it cannot be told
	begun     time.Time
	outcome   roles.Outcome
	ended     bool
}

// calls lists the calls on disk, oldest first.
func (s *session) calls() ([]callLog, error) {
	entries, err := os.ReadDir(s.project.Calls())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the calls: %w", err)
	}
	f, err := s.state()
	if err != nil { // it only tells which iteration a call was
		s.in.Warn(err)
		f = &state.File{}
	}
	var all []callLog
	for _, e := range entries {
		c, ok := parseKey(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		c.dir, c.iteration = s.project.Call(c.key), iterationOf(f, c)
		if err := c.read(); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b callLog) int { return a.begun.Compare(b.begun) })
	return all, nil
}

// read takes what the call's record says.
func (c *callLog) read() (err error) {
	rec := roles.Record{Dir: c.dir}
	if intent, ok, err := rec.Intent(); err == nil && ok {
		c.begun, c.agent = intent.Begun, intent.Agent
	}
	c.outcome, c.ended, err = rec.Outcome()
	return err
}

// began says whether there was a call at all: a record is begun before the engine
// is asked for anything.
func (c callLog) began() bool { return c.ended || roles.Record{Dir: c.dir}.Started() }

// parseKey reads p1-build-3.1.
func parseKey(name string) (callLog, bool) {
	c := callLog{key: name}
	parts := strings.Split(name, "-")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "p") {
		return c, false
	}
	step, attempt, dot := strings.Cut(parts[2], ".")
	var errs [3]error
	c.phase, errs[0] = strconv.Atoi(parts[0][1:])
	c.step, errs[1] = strconv.Atoi(step)
	c.attempt, errs[2] = strconv.Atoi(attempt)
	for _, r := range roles.Both() {
		if r.Verb == parts[1] {
			c.role = r.Name
		}
	}
	return c, dot && c.role != "" && errors.Join(errs[:]...) == nil
}

// iterationOf finds the iteration that a step was, from the phase's history.
func iterationOf(f *state.File, c callLog) int {
	p := f.Phases[fmt.Sprint(c.phase)]
	if p == nil {
		return 0
	}
	if p.Step == c.step {
		return p.Iteration
	}
	for _, h := range p.History {
		if h.Step == c.step {
			return h.Iteration
		}
	}
	return 0
}

func listCalls(in *cli.Input, calls []callLog) error {
	w, line := in.Stdout, in.Safe.Line
	if len(calls) == 0 {
		_, err := fmt.Fprintln(w, "no call yet")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CALL\tROLE\tPHASE\tITERATION\tAGENT\tENDED\tTOOK")
	for _, c := range calls {
		iteration, class, took := "?", "not yet", "-"
		if c.iteration > 0 {
			iteration = strconv.Itoa(c.iteration)
		}
		if c.ended {
			class, took = string(c.outcome.Class), (time.Duration(c.outcome.Duration) * time.Millisecond).Round(100*time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.key, c.role, c.phase, iteration, line(c.agent), line(class), took)
	}
	return t.Flush()
}
