package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/roles"
)

func logsCommand() cli.Command {
	return cli.Command{
		Name: "logs", Group: cli.Looking, Args: "[builder|verifier|app]", Values: []string{"builder", "verifier", "app"},
		Usage: "show what an agent said and did; without a role, list the calls",
		Long: `Shows the last call of a role: what the agent said, each tool that it used in a
line, and the first lines of what that gave. --raw shows all that it printed, which is
kept under .abl/logs/calls/; of the app that is all there is. What is shown is made
harmless first: escape codes and other controls of an agent never reach your terminal.
Of the app it is the last start, also one that failed or that abl open made.

-f goes on until the phase rests, with the calls that come meanwhile: of the role, or of
both where none is named. It ends as well when no abl works on the phase.`,
		Examples: "abl logs\nabl logs builder\nabl logs -f\nabl logs app --phase 1 --iteration 2",
		Flags: []cli.Flag{
			{Name: "follow", Short: "f", Usage: "go on until the phase rests, across calls"},
			{Name: "raw", Usage: "show what was printed as it is, for agents JSON lines"},
			{Name: "phase", Value: "N", Usage: "of this phase; otherwise the last that ran"},
			{Name: "iteration", Value: "I", Usage: "of this iteration; otherwise the last"},
		},
		Run: phase.Looking(runLogs),
	}
}

// logs are those that a person asks to see.
type logs struct {
	*phase.Project
	what             string // builder, verifier or app; "" for both roles
	phase, iteration int    // 0 for any
}

func runLogs(ctx context.Context, s *phase.Project) (err error) {
	l := logs{Project: s}
	if len(s.In.Args) > 0 {
		l.what = s.In.Args[0]
	}
	if l.phase, err = positive(s.In, "phase"); err != nil {
		return err
	}
	if l.iteration, err = positive(s.In, "iteration"); err != nil {
		return err
	}
	follow := s.In.Bool("follow")
	if l.what != "" || follow {
		err := l.show(ctx)
		if follow && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // Ctrl-C is how a person ends it
		}
		return err
	}
	if s.In.Bool("raw") {
		return cli.Usagef("--raw shows a role's call: name builder, verifier or app")
	}
	calls, err := l.calls()
	if err != nil {
		return err
	}
	none := "no call yet"
	if l.phase > 0 || l.iteration > 0 {
		none = "no call like that"
	}
	return listCalls(s.In, calls, none)
}

// positive is the value of a flag that counts from 1, 0 when it is not given.
func positive(in *cli.Input, flag string) (int, error) {
	n, err := in.Int(flag)
	if err == nil && in.Set(flag) && n < 1 {
		err = cli.Usagef("--%s counts from 1, and %d is less", flag, n)
	}
	return n, err
}

// calls are those on disk that are asked for, oldest first.
func (l *logs) calls() ([]phase.Call, error) {
	role, list := l.what, l.Calls
	if role == "app" {
		role, list = "", l.Starts
	}
	calls, err := list()
	return slices.DeleteFunc(calls, func(c phase.Call) bool {
		return role != "" && c.Role.Name != role || l.phase > 0 && c.Phase != l.phase || l.iteration > 0 && c.Iteration != l.iteration
	}), err
}

func listCalls(in *cli.Input, calls []phase.Call, none string) error {
	if len(calls) == 0 {
		fmt.Fprintln(in.Stdout, none)
		return nil
	}
	t := tabwriter.NewWriter(in.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CALL\tROLE\tPHASE\tITERATION\tAGENT\tENDED\tTOOK")
	for _, c := range calls {
		iteration, class, took := "?", "not yet", "-"
		if c.Iteration > 0 {
			iteration = strconv.Itoa(c.Iteration)
		}
		if c.Unread != nil {
			class = "damaged"
		}
		if c.Ended {
			class, took = string(c.Outcome.Class), tookText(c.Outcome)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			c.Key, c.Role.Name, c.Phase, iteration, wording.OneLine(c.Agent), class, took)
	}
	return t.Flush()
}

// tookText is how long an ended call took.
func tookText(o roles.Outcome) string {
	return (time.Duration(o.Duration) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// pollCalls is how often the next call is looked for.
const pollCalls = 200 * time.Millisecond

// show shows the last call and, where that is wanted, those after it.
func (l *logs) show(ctx context.Context) error {
	for last := ""; ; {
		over, err := l.over()
		if err != nil {
			return err
		}
		calls, err := l.calls()
		if err != nil {
			return err
		}
		from := slices.IndexFunc(calls, func(c phase.Call) bool { return c.Key == last }) + 1
		if last == "" {
			from = max(len(calls)-1, 0)
		}
		for _, c := range calls[from:] {
			last, l.phase = c.Key, c.Phase
			if err := l.showCall(ctx, c); err != nil {
				return err
			}
		}
		switch {
		case over && last == "":
			if l.what == "app" {
				return cli.WithHint("abl status says how far the phases are", "cannot find a start of the app like that")
			}
			return cli.WithHint("abl logs lists the calls", "cannot find a call of the %s like that", cmp.Or(l.what, "project"))
		case over:
			return nil
		}
		if err := proc.Pause(ctx, pollCalls); err != nil {
			return err
		}
	}
}

// over says that no more calls are waited for.
func (l *logs) over() (bool, error) {
	if !l.In.Bool("follow") {
		return true, nil
	}
	working := hostfs.Locked(l.Paths.Lock())
	f, err := l.State()
	if err != nil || !working {
		return true, err
	}
	p := f.Phase(l.phase)
	return l.phase > 0 && (!p.OnItsWay() || l.iteration > 0 && l.iteration != p.Iteration), nil
}

// showCall shows one call, to its end where it is followed.
func (l *logs) showCall(ctx context.Context, c phase.Call) (err error) {
	over := func() (bool, error) {
		if _, ended, err := c.Record.Outcome(); err != nil || ended {
			return ended, err
		}
		return l.over()
	}
	columns := view.Columns(l.In.Bare.Stdout)
	if l.what != "app" && !l.In.Bool("raw") {
		t := &view.Transcript{Out: l.In.Result, Safe: l.In.Safe, Who: c.Role.Name, Columns: columns, Colour: view.Coloured(l.In.Bare.Stdout)}
		t.Heading(heading(c))
		to := phase.Messages(l.Project, c, t.Show)
		err := roles.Lines(ctx, c.Stdout(), to, over)
		to(nil, false)
		end := l.ending(c)
		if t.Shown == 0 && err == nil {
			end += " (abl logs " + c.Role.Name + " --raw shows what it printed)"
		}
		t.Heading(end)
		return unreadable(ctx, err)
	}
	file, prefix := c.Stdout(), cmp.Or(l.what, c.Role.Name)+" │ "
	if l.what == "app" {
		file = c.App().Output()
	}
	out := l.In.Safe.Writer(l.In.Result, prefix)
	if columns > 2*len(prefix) {
		out.Fold(columns - len(prefix)) // rows that a terminal breaks by itself would lack the prefix
	}
	err = roles.Lines(ctx, file, func(line []byte, _ bool) { out.Write(append(line, '\n')) }, over)
	return unreadable(ctx, errors.Join(err, out.Close()))
}

// unreadable tells an output that cannot be read from a person who had enough.
func unreadable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return exit.With(exit.Environment, fmt.Errorf("cannot read the log: %w", err), "")
}

// heading says whose call it is.
func heading(c phase.Call) string {
	text := fmt.Sprintf("%s, phase %d", c.Role.Name, c.Phase)
	if c.Iteration > 0 {
		text += fmt.Sprintf(", iteration %d", c.Iteration)
	}
	return fmt.Sprintf("%s: %s (%s), %s UTC, %s", text, c.Agent, c.Model, c.Begun.UTC().Format(time.DateTime), c.Key)
}

// ending says how a call ended, and what it used.
func (l *logs) ending(c phase.Call) string {
	o, ended, err := c.Record.Outcome()
	if err != nil {
		return err.Error()
	}
	if !ended {
		return "it has not ended"
	}
	totals := ledger.Totals{Price: l.CostOf}
	for _, row := range orchestrator.Rows(c.Phase, c.Step, o) {
		totals.Add(row)
	}
	text := fmt.Sprintf("%s after %s, %s", o.Class, tookText(o), view.UsedWords(totals.Account().All))
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}
