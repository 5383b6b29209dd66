package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"abl/internal/proc"
)

const (
	// stopped is the exit code after SIGTERM, without a result record.
	stopped = 128 + int(syscall.SIGTERM)
	// leftoverWait is the wait for output of programs that a command left running.
	leftoverWait = time.Second
	outputLine   = 64 << 10 // bytes of a command's output in one record
)

// Player is one run of the scripted agent.
type Player struct {
	Call   ScriptCall
	AppURL string
	Dir    string // the workspace
	// Out receives the records. If writing fails, the call has no result record.
	Out io.Writer
	Now func() time.Time
}

// Play runs the steps, ends as the scenario says, and returns the exit code. It does not return for
// EndCrash, and for EndHang only when ctx ends.
func (p *Player) Play(ctx context.Context) int {
	c := p.Call
	p.record(Record{
		Type:      RecordInit,
		Role:      c.Role,
		Phase:     c.Phase,
		Iteration: c.Iteration,
		Attempt:   c.Attempt,
		Session:   c.Session,
	})
	for i, s := range c.Steps {
		err := p.step(ctx, s)
		if ctx.Err() != nil {
			return stopped
		}
		if err != nil {
			return p.fail(fmt.Sprintf("step %d: %v", i+1, err), "")
		}
	}
	switch c.End {
	case EndSilent:
		return c.Exit
	case EndError:
		return p.fail("the scenario ends this call with an error", "")
	case EndAway, EndLogin:
		return p.fail("the scenario simulates an error of the provider", c.End)
	case EndCrash, EndHang:
		if c.End == EndCrash {
			syscall.Kill(syscall.Getpid(), syscall.SIGKILL) // may take a moment
		}
		<-ctx.Done()
		return stopped
	}
	p.result(Record{Status: StatusSuccess})
	return c.Exit
}

// fail ends the call with a result record of an error, and with an exit code other than 0.
func (p *Player) fail(why string, trouble End) int {
	p.result(Record{Status: StatusError, Error: why, Trouble: trouble})
	return max(p.Call.Exit, 1)
}

// result writes r as the result record, with the usage of the call.
func (p *Player) result(r Record) {
	n := p.Call.Requests()
	r.Type, r.Usage, r.Requests = RecordResult, p.Call.Usage, &n
	p.record(r)
}

// record writes a line immediately, because abl shows the progress of an agent.
func (p *Player) record(r Record) {
	if line, err := json.Marshal(r); err == nil {
		p.Out.Write(append(line, '\n'))
	}
}

// tool writes a record of the next action.
func (p *Player) tool(name, detail string) {
	p.record(Record{Type: RecordTool, Tool: name, Text: detail})
}

// step runs one step. It follows no link out of the workspace.
func (p *Player) step(ctx context.Context, s Step) error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return fmt.Errorf("cannot open the workspace: %w", err)
	}
	defer root.Close()
	v := Values{Phase: p.Call.Phase, Iteration: p.Call.Iteration, Step: p.Call.Step, Time: p.Now(), AppURL: p.AppURL}
	switch kind := s.Kind(); kind {
	case "say":
		p.record(Record{Type: RecordMessage, Text: v.Fill(*s.Say)})
	case "raw":
		fmt.Fprintln(p.Out, *s.Raw)
	case "write":
		p.tool(kind, s.Write)
		return write(root, s.Write, v.Fill(s.Text), os.O_TRUNC, s.Mode)
	case "append":
		p.tool(kind, s.Append)
		return write(root, s.Append, v.Fill(s.Text), os.O_APPEND, "")
	case "report":
		name := ReportPath(p.Call.Role, v.Phase, v.Iteration, v.Time)
		p.tool(kind, name)
		return write(root, name, v.Fill(*s.Report), os.O_TRUNC, "")
	case "delete":
		p.tool(kind, s.Delete)
		return root.RemoveAll(s.Delete)
	case "run":
		return p.run(ctx, v.Fill(s.Run), s.Expect)
	case "sleep":
		p.tool(kind, time.Duration(s.Sleep).String())
		return proc.Pause(ctx, time.Duration(s.Sleep))
	case "print":
		p.tool(kind, fmt.Sprintf("%d bytes", s.Print))
		p.print(int64(s.Print))
	}
	return nil
}

// write writes text to a file, with the additional flag how, and creates missing folders. Without a
// mode it keeps the mode of an existing file, and uses 0644 for a new one.
func write(root *os.Root, name, text string, how int, mode string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|how, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if bits, _ := strconv.ParseUint(mode, 8, 32); mode != "" { // check has validated it
		err = errors.Join(err, f.Chmod(os.FileMode(bits)))
	}
	return errors.Join(err, f.Close())
}

// run runs a command and copies its output.
func (p *Player) run(ctx context.Context, command string, expect *int) error {
	p.tool("run", command)
	r, w := io.Pipe()
	printed := make(chan struct{})
	go func() { defer close(printed); p.copyLines(r) }()

	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.WaitDelay = p.Dir, leftoverWait
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	code, err := proc.Run(ctx, cmd, StopGrace)
	w.Close()
	<-printed
	if err != nil {
		return fmt.Errorf("cannot run %q: %w", command, err)
	}
	if expect != nil && code != *expect {
		return fmt.Errorf("%q ended with exit code %d, expected was %d", command, code, *expect)
	}
	return nil
}

// copyLines writes each line as a record, and a very long line as several.
func (p *Player) copyLines(r io.Reader) {
	in := bufio.NewReaderSize(r, outputLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			p.record(Record{Type: RecordOutput, Text: strings.TrimSuffix(string(line), "\n")})
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// printLine is the length of the lines of a print step, and printFrame the part of it without the
// filling, with the line end.
const (
	printLine  = 1024
	printFrame = len(`{"type":"output","text":"line 000000000001 "}`) + 1
)

// print writes size bytes as numbered records, so that a missing one is noticed. The last record
// has the rest, or the minimum length.
func (p *Player) print(size int64) {
	out := bufio.NewWriterSize(p.Out, outputLine)
	for n := 1; size > 0; n++ {
		fill := strings.Repeat("x", max(0, int(min(size, printLine))-printFrame))
		fmt.Fprintf(out, `{"type":"output","text":"line %012d %s"}`+"\n", n, fill)
		size -= printLine
	}
	out.Flush()
}
