package agent

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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
	// The exit code of one that was stopped; it has no last words.
	stopped = 128 + int(syscall.SIGTERM)
	// For output of programs that a command left behind.
	leftoverWait = time.Second
	outputLine   = 64 << 10 // bytes of a command's output in one record
)

// Player is one run of the scripted agent.
type Player struct {
	Call   ScriptCall
	AppURL string
	Dir    string // the workspace
	// An output that cannot be written leaves the call without its last record.
	Out io.Writer
	Now func() time.Time
}

// Play carries out the steps, ends as the call says, and returns the exit code.
// It does not return from EndCrash, and from EndHang only when ctx ends.
func (p *Player) Play(ctx context.Context) int {
	c := p.Call
	p.record(Record{Type: RecordInit, Role: c.Role, Phase: c.Phase, Iteration: c.Iteration, Attempt: c.Attempt,
		Session: c.Session})
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
		return p.fail("the scenario ends this call in an error", "")
	case EndAway, EndLogin:
		return p.fail("the scenario plays a provider's trouble", c.End)
	case EndCrash, EndHang:
		if c.End == EndCrash {
			syscall.Kill(syscall.Getpid(), syscall.SIGKILL) // which needs a moment
		}
		<-ctx.Done()
		return stopped
	}
	p.result(Record{Status: StatusSuccess})
	return c.Exit
}

// fail ends the call with a final record that says error; an exit code of 0
// would contradict it.
func (p *Player) fail(why string, trouble End) int {
	p.result(Record{Status: StatusError, Error: why, Trouble: trouble})
	return max(p.Call.Exit, 1)
}

// result makes r the last record of the call, with all that was counted.
func (p *Player) result(r Record) {
	n := p.Call.Requests()
	r.Type, r.Usage, r.Requests = RecordResult, p.Call.Usage, &n
	p.record(r)
}

// record writes one line at once: abl shows what an agent does while it does it.
func (p *Player) record(r Record) {
	if line, err := json.Marshal(r); err == nil {
		p.Out.Write(append(line, '\n'))
	}
}

// tool says what is about to be done.
func (p *Player) tool(name, detail string) {
	p.record(Record{Type: RecordTool, Tool: name, Text: detail})
}

// step carries out one step. No link leads it out of the workspace.
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

// write writes text to a file, with how as the further flag, and makes the
// folders on the way. Without a mode it leaves that of what is there, or gives 0644.
func write(root *os.Root, name, text string, how int, mode string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|how, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if bits, _ := strconv.ParseUint(mode, 8, 32); mode != "" { // check has read it before
		err = cmp.Or(err, f.Chmod(os.FileMode(bits)))
	}
	return cmp.Or(err, f.Close())
}

// run runs a command and prints what it prints.
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

// copyLines prints each line as a record, a very long one in pieces.
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

// printLine is the length of the lines of a print step, and printFrame what of it is
// no filling, line end included.
const (
	printLine  = 1024
	printFrame = len(`{"type":"output","text":"line 000000000001 "}`) + 1
)

// print prints size bytes as numbered output records, so that a reader can tell
// whether one is missing. The last one takes what is left, or as little as one can.
func (p *Player) print(size int64) {
	out := bufio.NewWriterSize(p.Out, outputLine)
	for n := 1; size > 0; n++ {
		fill := strings.Repeat("x", max(0, int(min(size, printLine))-printFrame))
		fmt.Fprintf(out, `{"type":"output","text":"line %012d %s"}`+"\n", n, fill)
		size -= printLine
	}
	out.Flush()
}
