// Package player carries out a scenario's call inside the container, as the
// scripted agent. What a scenario is, is package scenario's.
package player

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"time"

	"abl/roles/scenario"
)

const (
	bufferSize = 64 << 10
	stopped    = 128 + int(syscall.SIGTERM) // the exit code of one that was stopped; it has no last words
)

// Player is one run of the scripted agent.
type Player struct {
	Call   scenario.Call
	AppURL string
	Dir    string // the workspace
	Out    io.Writer
	Now    func() time.Time

	out *bufio.Writer
}

// Play carries out the steps, ends as the call says, and returns the exit code.
// It does not return from EndCrash, and from EndHang only when ctx ends.
func (p *Player) Play(ctx context.Context) int {
	p.out = bufio.NewWriterSize(p.Out, bufferSize)
	defer p.out.Flush()
	c := p.Call
	p.record(scenario.Record{Type: scenario.RecordInit, Role: c.Role, Phase: c.Phase, Iteration: c.Iteration, Attempt: c.Attempt, Session: c.Session})
	for i, s := range c.Steps {
		err := p.step(ctx, s)
		if ctx.Err() != nil {
			return stopped
		}
		if err != nil {
			return p.fail(fmt.Sprintf("step %d: %v", i+1, err))
		}
		// abl shows what an agent does while it does it.
		if err := p.out.Flush(); err != nil {
			return 1
		}
	}
	return p.end(ctx)
}

func (p *Player) end(ctx context.Context) int {
	switch p.Call.End {
	case scenario.EndSilent:
		return p.Call.Exit
	case scenario.EndError:
		return p.fail("the scenario ends this call in an error")
	case scenario.EndAway, scenario.EndLogin:
		p.record(p.final(scenario.Record{Status: scenario.StatusError, Error: "the scenario plays a provider's trouble", Trouble: p.Call.End}))
		return max(p.Call.Exit, 1)
	case scenario.EndCrash:
		p.out.Flush()
		syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		<-ctx.Done() // the signal needs a moment
		return 1
	case scenario.EndHang:
		p.out.Flush()
		<-ctx.Done()
		return stopped
	}
	p.result(scenario.StatusSuccess, "")
	return p.Call.Exit
}

// fail ends the call with a final record that says error; an exit code of 0
// would contradict it.
func (p *Player) fail(why string) int {
	p.result(scenario.StatusError, why)
	return max(p.Call.Exit, 1)
}

func (p *Player) result(status, why string) {
	p.record(p.final(scenario.Record{Status: status, Error: why}))
}

// final makes r the last record of the call, with all that was counted.
func (p *Player) final(r scenario.Record) scenario.Record {
	n := p.Call.Requests()
	r.Type, r.Usage, r.Requests = scenario.RecordResult, p.Call.Usage, &n
	return r
}

// record writes one line; an output that cannot be written is noticed at the flush.
func (p *Player) record(r scenario.Record) {
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	p.line(line)
}

func (p *Player) line(line []byte) {
	p.out.Write(line)
	p.out.WriteByte('\n')
}

func (p *Player) values() scenario.Values {
	return scenario.Values{
		Phase: p.Call.Phase, Iteration: p.Call.Iteration, Step: p.Call.Step,
		Time: p.Now(), AppURL: p.AppURL,
	}
}
