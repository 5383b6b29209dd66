package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/sanitize"
	"abl/orchestrator/state"
	"abl/roles"
)

func logsCommand() cli.Command {
	return cli.Command{
		Name: "logs", Group: cli.Looking, Args: "[builder|verifier|app]", MaxArgs: 1, Values: []string{"builder", "verifier", "app"},
		Usage: "show what a call printed; without a role, list the calls",
		Long: `Every call keeps all that it printed under .abl/logs/calls/. What is shown is
made harmless first: escape codes and other controls of an agent never reach
your terminal.`,
		Examples: "abl logs\nabl logs builder -f\nabl logs app --phase 1 --iteration 2",
		Flags: []cli.Flag{
			{Name: "follow", Short: "f", Usage: "go on until the call ends"},
			{Name: "phase", Value: "N", Usage: "of this phase; otherwise the last that ran"},
			{Name: "iteration", Value: "I", Usage: "of this iteration; otherwise the last"},
		},
		Run: func(ctx context.Context, in *cli.Input) error {
			s, err := open(in)
			if err != nil {
				return err
			}
			calls, err := s.calls()
			if err != nil {
				return err
			}
			if len(in.Args) == 0 {
				return listCalls(in.Stdout, calls)
			}
			return s.showLog(ctx, in, calls)
		},
	}
}

// callLog is one call on disk.
type callLog struct {
	key       string
	dir       string
	role      string
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
	if err != nil {
		return nil, err
	}
	var all []callLog
	for _, e := range entries {
		c, ok := parseKey(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		c.dir, c.iteration = s.project.Call(c.key), iterationOf(f, c)
		rec := roles.Record{Dir: c.dir}
		if c.outcome, c.ended, err = rec.Outcome(); err != nil {
			return nil, err
		}
		if intent, ok, err := rec.Intent(); err == nil && ok {
			c.begun = intent.Begun
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b callLog) int { return a.begun.Compare(b.begun) })
	return all, nil
}

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
	for _, r := range []roles.Role{roles.Builder, roles.Verifier} {
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

func listCalls(w io.Writer, calls []callLog) error {
	if len(calls) == 0 {
		_, err := fmt.Fprintln(w, "no call yet")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CALL\tROLE\tPHASE\tITERATION\tAGENT\tENDED\tTOOK")
	for _, c := range calls {
		class, took := "not yet", "-"
		if c.ended {
			class, took = string(c.outcome.Class), (time.Duration(c.outcome.Duration) * time.Millisecond).Round(100*time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", c.key, c.role, c.phase, c.iteration, c.outcome.Agent, class, took)
	}
	return t.Flush()
}

// showLog prints the output of the call that the person asked for.
func (s *session) showLog(ctx context.Context, in *cli.Input, calls []callLog) error {
	what := in.Args[0]
	c, path, err := chooseLog(in, what, calls)
	if err != nil {
		return err
	}
	out := sanitize.NewWriter(in.Stdout, what+" │ ")
	defer out.Close()
	from, err := copyFrom(out, path, 0)
	for err == nil && in.Bool("follow") {
		_, ended, oerr := roles.Record{Dir: c.dir}.Outcome()
		if from, err = copyFrom(out, path, from); err != nil || ended || oerr != nil {
			return errors.Join(err, oerr)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return err
}

// chooseLog picks the last call that fits, and the file to show of it.
func chooseLog(in *cli.Input, what string, calls []callLog) (callLog, string, error) {
	role, file := what, "stdout"
	switch what {
	case "app":
		role, file = roles.Verifier.Name, filepath.Join("app", "app.log")
	case roles.Builder.Name, roles.Verifier.Name:
	default:
		return callLog{}, "", fault(exit.Usage, fmt.Errorf("cannot show the log of %q", what), "it is builder, verifier or app")
	}
	for _, c := range slices.Backward(calls) {
		if c.role == role && fits(in, "phase", c.phase) && fits(in, "iteration", c.iteration) {
			return c, filepath.Join(c.dir, file), nil
		}
	}
	return callLog{}, "", fault(exit.Usage, fmt.Errorf("cannot find a call of the %s like that", what), "abl logs lists the calls")
}

// fits says whether a number flag is absent or has this value.
func fits(in *cli.Input, flag string, n int) bool {
	return !in.Set(flag) || in.String(flag) == strconv.Itoa(n)
}

// copyFrom prints a file from an offset on and returns where it ended.
func copyFrom(w io.Writer, path string, from int64) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return from, nil
	}
	if err != nil {
		return from, fmt.Errorf("cannot read the log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	n, err := io.Copy(w, f)
	return from + n, err
}
