package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"time"
)

const (
	bufferSize = 64 << 10
	stopped    = 128 + int(syscall.SIGTERM) // the exit code of one that was stopped; it has no last words
)

// Player is one run of the scripted agent.
type Player struct {
	Call   ScriptCall
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
	p.record(Record{Type: RecordInit, Role: c.Role, Phase: c.Phase, Iteration: c.Iteration, Attempt: c.Attempt, Session: c.Session})
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
	case EndSilent:
		return p.Call.Exit
	case EndError:
		return p.fail("the scenario ends this call in an error")
	case EndAway, EndLogin:
		p.record(p.final(Record{Status: StatusError, Error: "the scenario plays a provider's trouble", Trouble: p.Call.End}))
		return max(p.Call.Exit, 1)
	case EndCrash:
		p.out.Flush()
		syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		<-ctx.Done() // the signal needs a moment
		return 1
	case EndHang:
		p.out.Flush()
		<-ctx.Done()
		return stopped
	}
	p.result(StatusSuccess, "")
	return p.Call.Exit
}

// fail ends the call with a final record that says error; an exit code of 0
// would contradict it.
func (p *Player) fail(why string) int {
	p.result(StatusError, why)
	return max(p.Call.Exit, 1)
}

func (p *Player) result(status, why string) {
	p.record(p.final(Record{Status: status, Error: why}))
}

// final makes r the last record of the call, with all that was counted.
func (p *Player) final(r Record) Record {
	n := p.Call.Requests()
	r.Type, r.Usage, r.Requests = RecordResult, p.Call.Usage, &n
	return r
}

// record writes one line; an output that cannot be written is noticed at the flush.
func (p *Player) record(r Record) {
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

func (p *Player) values() Values {
	return Values{
		Phase: p.Call.Phase, Iteration: p.Call.Iteration, Step: p.Call.Step,
		Time: p.Now(), AppURL: p.AppURL,
	}
}
