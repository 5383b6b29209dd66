package phase

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
	"abl/internal/audit"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/state"
)

// notifyTime is how long notify.command may take.
const notifyTime = 30 * time.Second

// Notification is what notify.command reads on its standard input.
type Notification struct {
	Event   string    `json:"event"` // passed, stuck, unverified, budget, waiting or fault
	Phase   int       `json:"phase"`
	Title   string    `json:"title"`
	Verdict string    `json:"verdict"`
	Exit    *int      `json:"exit,omitempty"`
	Text    string    `json:"text"`
	CostUSD string    `json:"cost_usd"` // of the phase, or unknown
	Report  string    `json:"report"`   // its newest audit record, "" for none
	Until   time.Time `json:"until,omitzero"`
}

// Notifier hands events on, and tells the person's command what somebody may wait for.
type Notifier struct {
	state.Sink
	s       *Project
	command string
	limit   time.Duration
	begun   bool // the phase went on, so how it ends is news
	running sync.WaitGroup
}

// Notifying puts a Notifier before out.
func Notifying(s *Project, out state.Sink) *Notifier {
	return &Notifier{Sink: out, s: s, command: s.Conf.Notify.Command, limit: notifyTime}
}

// Emit hands an event on. Of a wait that is longer than a minute the person hears.
func (n *Notifier) Emit(e state.Event) {
	n.Sink.Emit(e)
	if e.Kind == state.PhaseStart {
		n.begun = true
	}
	if e.Kind == state.Wait && e.MS > time.Minute.Milliseconds() {
		n.running.Go(func() { n.notify("waiting", e, nil) })
	}
}

// Ended tells how a phase ended, once what was to be told before is told. What a signal ended is
// no news to who sent it, nor is what a phase came to in an earlier run.
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

// notify runs the command. That it fails changes nothing.
func (n *Notifier) notify(event string, e state.Event, code *int) {
	if n.command == "" {
		return
	}
	this, _ := n.s.Specs().Phase(e.Phase)
	say := Notification{
		Event: event, Phase: e.Phase, Title: this.Title, Verdict: e.Verdict, Exit: code, Text: e.Text, Until: e.Until, CostUSD: ledger.Unknown,
	}
	if used, err := Used(n.s, e.Phase); err == nil && used.Rows > 0 && used.Cost.Missing == 0 {
		say.CostUSD = used.Cost.Known.String()
	}
	if steps, err := audit.Steps(n.s.Paths, e.Phase); err == nil && len(steps) > 0 {
		say.Report = audit.Path(n.s.Paths, e.Phase, steps[len(steps)-1])
	}
	if err := n.run(say); err != nil {
		text := "warning: notify.command: " + err.Error()
		n.Sink.Emit(state.Event{Time: time.Now().UTC(), Kind: state.Note, Phase: e.Phase, Text: text})
	}
}

func (n *Notifier) run(say Notification) error {
	err := n.s.In.Safe.Clean(&say)
	data, merr := json.Marshal(say)
	if err = errors.Join(err, merr); err != nil {
		return err
	}
	late := fmt.Errorf("it took longer than %s", n.limit)
	ctx, cancel := context.WithTimeoutCause(context.Background(), n.limit, late)
	defer cancel()
	said := proc.Head{Max: 4 << 10}
	cmd := proc.Command(context.Background(), "sh", "-c", n.command) // proc stops it, with all that it started
	cmd.Dir, cmd.Stdin = n.s.Paths.Root, bytes.NewReader(append(data, '\n'))
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr, cmd.WaitDelay = proc.Leader(), time.Second
	runtime.LockOSThread() // proc.Leader is about the thread
	defer runtime.UnlockOSThread()
	switch code, err := proc.Run(ctx, cmd, time.Second); {
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("exit code %d: %s", code, said.Kept.String())
	}
	return nil
}
