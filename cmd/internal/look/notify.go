package look

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/audit"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/state"
)

// notifyTime is how long notify.command may take.
const notifyTime = 30 * time.Second

// notification is what notify.command reads on its standard input.
type notification struct {
	Event   string    `json:"event"` // passed, stuck, unverified, budget, waiting or fault
	Phase   int       `json:"phase"`
	Title   string    `json:"title"`
	Verdict string    `json:"verdict"`
	Exit    *int      `json:"exit,omitempty"`
	Text    string    `json:"text"`
	CostUSD string    `json:"cost_usd"` // of the phase, or unknown
	Report  string    `json:"report"`   // path of its newest audit record, may be ""
	Until   time.Time `json:"until,omitzero"`
}

// Notifier passes events on, and runs notify.command when a phase ends or waits.
type Notifier struct {
	state.Sink
	s       *project.Project
	command string
	limit   time.Duration
	begun   bool // the phase ran in this process, so its end is news
	running sync.WaitGroup
}

// Notifying returns a Notifier that passes events on to out.
func Notifying(s *project.Project, out state.Sink) *Notifier {
	return &Notifier{Sink: out, s: s, command: s.Conf.Notify.Command, limit: notifyTime}
}

// Emit passes an event on. It runs the command for a wait of more than a minute.
func (n *Notifier) Emit(e state.Event) {
	n.Sink.Emit(e)
	if e.Kind == state.PhaseStart {
		n.begun = true
	}
	if e.Kind == state.Wait && e.MS > time.Minute.Milliseconds() {
		n.running.Go(func() { n.notify("waiting", e, nil) })
	}
}

// Ended runs the command for the end of a phase, after all earlier commands have ended. It does not run it
// for a phase that a signal stopped or that ended in an earlier run: the user knows.
func (n *Notifier) Ended(e state.Event, code int) {
	n.running.Wait()
	event := map[int]string{
		exit.Passed: "passed", exit.Stuck: "stuck", exit.Unverified: "unverified", exit.Budget: "budget",
	}[code]
	if event != "" && !n.begun || code == exit.HUP || code == exit.INT || code == exit.TERM {
		return
	}
	n.notify(cmp.Or(event, "fault"), e, &code)
	n.begun = false
}

// notify runs the command. If the command fails, it only emits a warning.
func (n *Notifier) notify(event string, e state.Event, code *int) {
	if n.command == "" {
		return
	}
	this, _ := n.s.Specs().Phase(e.Phase)
	say := notification{
		Event:   event,
		Phase:   e.Phase,
		Title:   this.Title,
		Verdict: e.Verdict,
		Exit:    code,
		Text:    e.Text,
		Until:   e.Until,
		CostUSD: ledger.Unknown,
	}
	if used, err := n.s.Used(e.Phase); err == nil && used.Rows > 0 && used.Cost.Missing == 0 {
		say.CostUSD = used.Cost.Known.String()
	}
	if steps, err := audit.Steps(n.s.Paths, e.Phase); err == nil && len(steps) > 0 {
		say.Report = audit.Path(n.s.Paths, e.Phase, steps[len(steps)-1])
	}
	if err := n.run(say); err != nil {
		text := "warning: notify.command: " + err.Error()
		n.Sink.Emit(state.Event{Kind: state.Note, Phase: e.Phase, Text: text})
	}
}

func (n *Notifier) run(say notification) error {
	err := n.s.In.Safe.Clean(&say)
	data, merr := json.Marshal(say)
	if err = errors.Join(err, merr); err != nil {
		return err
	}
	late := fmt.Errorf("the command took longer than %s", n.limit)
	ctx, cancel := context.WithTimeoutCause(context.Background(), n.limit, late)
	defer cancel()
	said := proc.Head{Max: 4 << 10}
	cmd := proc.Command(context.Background(), "sh", "-c", n.command) // proc.Run stops its process group
	cmd.Dir, cmd.Stdin = n.s.Paths.Root, bytes.NewReader(append(data, '\n'))
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr, cmd.WaitDelay = proc.Leader(), time.Second
	runtime.LockOSThread() // proc.Leader applies to the thread
	defer runtime.UnlockOSThread()
	switch code, err := proc.Run(ctx, cmd, time.Second); {
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("exit code %d: %s", code, said.Kept.String())
	}
	return nil
}
