package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/wording"
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
		Run: phase.Opened(runLogs),
	}
}

func runLogs(ctx context.Context, s *phase.Project) error {
	in, log := s.In, ""
	if len(in.Args) > 0 {
		log = in.Args[0]
	} else if in.Bool("follow") {
		return cli.WithHint("abl logs builder -f", "-f needs a log to follow: builder, verifier or app")
	}
	role, file := log, "stdout"
	if log == "app" {
		role, file = roles.Verifier.Name, filepath.Join("app", "app.log")
	}
	n, err := positive(in, "phase")
	if err != nil {
		return err
	}
	iteration, err := positive(in, "iteration")
	if err != nil {
		return err
	}
	calls, err := s.Calls()
	if err != nil {
		return err
	}
	calls = slices.DeleteFunc(calls, func(c phase.Call) bool {
		return role != "" && c.Role.Name != role || n > 0 && c.Phase != n ||
			iteration > 0 && c.Iteration != iteration
	})
	switch {
	case log == "":
		return listCalls(in, calls)
	case len(calls) == 0:
		return exit.With(exit.Usage, fmt.Errorf("cannot find a call of the %s like that", role), "abl logs lists the calls")
	}
	return show(ctx, in, log, calls[len(calls)-1], file)
}

// positive is the value of a flag that counts from 1, 0 when it is not given.
func positive(in *cli.Input, flag string) (int, error) {
	n, err := in.Int(flag)
	if err == nil && in.Set(flag) && n < 1 {
		err = cli.Usagef("--%s counts from 1, and %d is less", flag, n)
	}
	return n, err
}

func listCalls(in *cli.Input, calls []phase.Call) error {
	if len(calls) == 0 {
		fmt.Fprintln(in.Stdout, "no call yet")
		return nil
	}
	t := tabwriter.NewWriter(in.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CALL\tROLE\tPHASE\tITERATION\tAGENT\tENDED\tTOOK")
	for _, c := range calls {
		iteration, class, took := "?", "not yet", "-"
		if c.Iteration > 0 {
			iteration = strconv.Itoa(c.Iteration)
		}
		if c.Ended {
			class, took = string(c.Outcome.Class), (time.Duration(c.Outcome.Duration) * time.Millisecond).Round(100*time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			c.Key, c.Role.Name, c.Phase, iteration, wording.OneLine(c.Agent), class, took)
	}
	return t.Flush()
}

// pollLog is how often a log that is followed is looked at.
const pollLog = 200 * time.Millisecond

// show prints a call's output and, when it is followed, goes on to its end.
func show(ctx context.Context, in *cli.Input, log string, c phase.Call, file string) (err error) {
	prefix := log + " │ "
	out := in.Safe.Writer(in.Result, prefix)
	if columns := view.Columns(in.Bare.Stdout); columns > 2*len(prefix) {
		out.Fold(columns - len(prefix)) // rows that a terminal breaks by itself would lack the prefix
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	path := filepath.Join(c.Dir, file)
	for from := int64(0); ; {
		// Asked before reading: what is printed until the end is then read too.
		_, ended, err := c.Record.Outcome()
		if err != nil {
			return err
		}
		if from, err = copyFrom(ctx, out, path, from); err != nil || ended || !in.Bool("follow") {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollLog):
		}
	}
}

// copyFrom prints a file from an offset on and returns where it ended. There
// may be no file yet.
func copyFrom(ctx context.Context, w io.Writer, path string, from int64) (int64, error) {
	f, err := roles.OpenOutput(path)
	if errors.Is(err, hostfs.ErrAbsent) {
		return from, nil
	}
	if err != nil {
		return from, exit.With(exit.Environment, fmt.Errorf("cannot read the log: %w", err), "")
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	defer context.AfterFunc(ctx, func() { f.Close() })() // a log may be a gigabyte
	n, err := io.Copy(w, f)
	return from + n, cmp.Or(ctx.Err(), err)
}
