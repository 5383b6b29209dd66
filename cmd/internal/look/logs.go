package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/roles"
)

// LogsCommand returns `abl logs`.
func LogsCommand() cli.Command {
	var l logs
	return cli.Command{
		Name:   "logs",
		Group:  cli.Inspecting,
		Args:   "[builder|verifier|app|CALL]",
		Values: []string{"builder", "verifier", "app"},
		Open:   true,
		Usage:  "show the transcript of a call; without an argument, list the calls",
		Long: `Without an argument, lists the calls with their round, iteration and end. With CALL, a
name from that list, shows the call: what the agent said, each tool that it used, and the
first lines of each result, or its requests to the model if it printed nothing. With a role,
shows the last call of that role. app shows the output of the app's last start, also of a
start that failed.

--raw shows the whole output, which abl keeps in .abl/logs/calls/. Agents print JSON
lines. In a pipe the lines have no prefix, so that jq can read them. Escape codes and
other control characters never reach your terminal.

-f follows the calls until the phase ends or no abl works on it.`,
		Examples: "abl logs\nabl logs p1-build-2.1\nabl logs builder --round 1 --iteration 2\nabl logs -f\n" +
			"abl logs verifier --raw | jq .",
		Flags: []cli.Flag{
			{Name: "follow", To: &l.follow, Short: "f", Usage: "follow the calls until the phase ends"},
			{Name: "raw", To: &l.raw, Usage: "show the output as printed: JSON lines for agents"},
			{Name: "phase", To: &l.phase, Value: "N", Usage: "show this phase (default: the last that ran)"},
			{Name: "round", To: &l.round, Value: "R", Usage: "show this round (default: the last)"},
			{Name: "iteration", To: &l.iteration, Value: "I", Usage: "show this iteration (default: the last)"},
			{Name: "json", Usage: "list the calls as one JSON document (docs/json.md)"},
		},
		Run: project.Looking(l.run),
	}
}

// logs selects the logs that the user asked for.
type logs struct {
	*project.Project
	what                    string // builder, verifier or app; "" for both roles
	key                     string // the key of one call, "" for any
	phase, round, iteration int    // 0 for any
	follow, raw             bool
}

func (l *logs) run(ctx context.Context, s *project.Project) error {
	l.Project = s
	if err := l.parse(s.In.Args); err != nil {
		return err
	}
	list := s.In.Bool("json")
	if list && (l.follow || l.raw) {
		return cli.Usagef("cannot combine --json with --follow or --raw: --json lists the calls")
	}
	if !list && (l.what+l.key != "" || l.follow) {
		err := l.show(ctx)
		if l.follow && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // Ctrl-C is the usual way to end it
		}
		return err
	}
	if l.raw {
		return cli.Usagef("--raw needs builder, verifier, app or a call")
	}
	calls, err := l.calls()
	if err != nil {
		return err
	}
	none := "no calls yet"
	if l.phase+l.round+l.iteration > 0 || l.what+l.key != "" {
		none = "no matching calls"
	}
	if len(calls) == 0 && !list {
		_, err := fmt.Fprintln(s.In.Stdout, none)
		return err
	}
	return s.In.ShowTable(documentOf(calls), tableOf(calls))
}

// parse reads the argument: a role, "app", or the key of a call.
func (l *logs) parse(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, is := roles.ParseKey(args[0]); is {
		l.key = args[0]
		return nil
	}
	l.what = args[0]
	if slices.Contains([]string{"builder", "verifier", "app"}, l.what) {
		return nil
	}
	return cli.WithHint("abl logs lists the calls",
		"logs takes builder, verifier, app or a call such as p1-build-1.1, not %q", l.what)
}

// calls returns the selected calls, oldest first. For the app they are its starts.
func (l *logs) calls() ([]project.Call, error) {
	role, list := l.what, l.Calls
	if role == "app" {
		role, list = "", l.Starts
	}
	calls, err := list()
	return slices.DeleteFunc(calls, func(c project.Call) bool {
		return role != "" && c.Role.Name != role ||
			l.key != "" && c.Key != l.key ||
			l.phase > 0 && c.Phase != l.phase ||
			l.round > 0 && c.Round != l.round ||
			l.iteration > 0 && c.Iteration != l.iteration
	}), err
}

// callDocument is one call as `abl logs --json` prints it.
type callDocument struct {
	Call      string    `json:"call"`
	Role      string    `json:"role"`
	Phase     int       `json:"phase"`
	Round     int       `json:"round,omitempty"`
	Iteration int       `json:"iteration,omitempty"`
	Step      int       `json:"step"`
	Attempt   int       `json:"attempt"`
	Agent     string    `json:"agent"`
	Model     string    `json:"model,omitempty"`
	Begun     time.Time `json:"begun,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Class     string    `json:"class,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	MS        int64     `json:"duration_ms,omitempty"`
	Damaged   string    `json:"damaged,omitempty"`
}

// documentOf returns what `abl logs --json` prints.
func documentOf(calls []project.Call) map[string]any {
	all := []callDocument{}
	for _, c := range calls {
		d := callDocument{
			Call:      c.Key,
			Role:      c.Role.Name,
			Phase:     c.Phase,
			Round:     c.Round,
			Iteration: c.Iteration,
			Step:      c.Step,
			Attempt:   c.Attempt,
			Agent:     c.Agent,
			Model:     c.Model,
			Begun:     c.Begun,
			Ended:     c.Outcome.Ended,
			Class:     string(c.Outcome.Class),
			Reason:    c.Outcome.Reason,
			MS:        c.Outcome.Duration,
		}
		if c.Unread != nil {
			d.Damaged = c.Unread.Error()
		}
		all = append(all, d)
	}
	return map[string]any{"calls": all}
}

// tableOf returns the table of calls.
func tableOf(calls []project.Call) view.Table {
	known := func(n int) string {
		if n == 0 {
			return "?"
		}
		return strconv.Itoa(n)
	}
	t := view.Table{Header: strings.Fields("CALL ROLE PHASE ROUND ITERATION AGENT ENDED TOOK"), Flex: 5}
	for _, c := range calls {
		class, took := "not yet", "-"
		if c.Unread != nil {
			class = "damaged"
		}
		if c.Ended {
			class, took = string(c.Outcome.Class), tookText(c.Outcome)
		}
		t.Rows = append(t.Rows, []string{
			c.Key, c.Role.Name, strconv.Itoa(c.Phase), known(c.Round), known(c.Iteration), wording.OneLine(c.Agent), class, took,
		})
	}
	return t
}

// tookText returns how long an ended call took.
func tookText(o roles.Outcome) string {
	return (time.Duration(o.Duration) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// pollCalls is the time between two checks for a next call.
const pollCalls = 200 * time.Millisecond

// show prints the last call and, with --follow, the calls after it.
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
		from := slices.IndexFunc(calls, func(c project.Call) bool { return c.Key == last }) + 1
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
				return cli.WithHint("abl status shows the state of the phases", "no matching start of the app")
			}
			if l.key != "" {
				return cli.WithHint("abl logs lists the calls", "there is no call %s", l.key)
			}
			return cli.WithHint("abl logs lists the calls", "no matching call of the %s", cmp.Or(l.what, "project"))
		case over || l.key != "":
			return nil
		}
		if err := proc.Pause(ctx, pollCalls); err != nil {
			return err
		}
	}
}

// over reports whether no more calls are expected.
func (l *logs) over() (bool, error) {
	if !l.follow {
		return true, nil
	}
	working := hostfs.Locked(l.Paths.Lock())
	f, err := l.State()
	if err != nil || !working {
		return true, err
	}
	p := f.Phase(l.phase)
	elsewhere := l.iteration > 0 && l.iteration != p.Iteration || l.round > 0 && l.round != p.Round
	return l.phase > 0 && (!p.OnItsWay() || elsewhere), nil
}

// showCall prints one call. With --follow it waits for the end of the call.
func (l *logs) showCall(ctx context.Context, c project.Call) (err error) {
	over := func() (bool, error) {
		if _, ended, err := c.Record.Outcome(); err != nil || ended {
			return ended, err
		}
		return l.over()
	}
	columns := view.Columns(l.In.Bare.Stdout)
	if l.what != "app" && !l.raw {
		t := &view.Transcript{
			Out:     l.In.Result,
			Safe:    l.In.Safe,
			Who:     c.Role.Name,
			Columns: columns,
			Colour:  view.Coloured(l.In.Bare.Stdout),
		}
		t.Heading(heading(c))
		to := l.Messages(c, t.Show)
		err := roles.Lines(ctx, c.Stdout(), to, over)
		to(nil, false)
		end := l.ending(c)
		if t.Shown == 0 && err == nil {
			end += " (abl logs " + c.Key + " --raw shows its output)"
			l.Requests(c, t.Show)
		}
		t.Heading(end)
		return unreadable(ctx, err)
	}
	file, prefix := c.Stdout(), cmp.Or(l.what, c.Role.Name)+" │ "
	if l.what == "app" {
		file = c.App().Output()
	}
	if l.raw && columns == 0 { // a program such as jq reads the lines
		prefix = ""
	}
	out := l.In.Safe.Writer(l.In.Result, prefix)
	if columns > 2*len(prefix) {
		out.Fold(columns - len(prefix)) // so that each row has the prefix
	}
	err = roles.Lines(ctx, file, func(line []byte, _ bool) { out.Write(append(line, '\n')) }, over)
	return unreadable(ctx, errors.Join(err, out.Close()))
}

// unreadable returns an error for a log that cannot be read. After Ctrl-C it returns err.
func unreadable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return exit.With(exit.Environment, fmt.Errorf("cannot read the log: %w", err), "")
}

// heading returns the first line of a call's transcript.
func heading(c project.Call) string {
	text := fmt.Sprintf("%s, phase %d", c.Role.Name, c.Phase)
	if c.Round > 1 {
		text += fmt.Sprintf(", round %d", c.Round)
	}
	if c.Iteration > 0 {
		text += fmt.Sprintf(", iteration %d", c.Iteration)
	}
	return fmt.Sprintf("%s: %s (%s), %s UTC, %s", text, c.Agent, c.Model, c.Begun.UTC().Format(time.DateTime), c.Key)
}

// ending returns the last line of a call's transcript: how the call ended, and its usage.
func (l *logs) ending(c project.Call) string {
	o, ended, err := c.Record.Outcome()
	if err != nil {
		return err.Error()
	}
	if !ended {
		return "the call has not ended"
	}
	totals := l.Totals()
	for _, row := range orchestrator.Rows(c.Phase, c.Step, o) {
		totals.Add(row)
	}
	text := fmt.Sprintf("%s after %s, %s", o.Class, tookText(o), view.UsedWords(totals.Account().All))
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}
