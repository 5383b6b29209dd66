package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"time"

	"abl/internal/proc"
)

const (
	stopGrace    = 5 * time.Second
	leftoverWait = time.Second // for output of programs that a command left behind
	maxLine      = 64 << 10    // bytes of a command's output in one record
)

// step carries out one step.
func (p *Player) step(ctx context.Context, s Step) error {
	v := p.values()
	switch s.Kind() {
	case "say":
		p.record(Record{Type: RecordMessage, Text: v.Fill(*s.Say)})
	case "raw":
		p.line([]byte(*s.Raw))
	case "write":
		return p.write(s.Kind(), s.Write, v.Fill(s.Text), os.O_TRUNC, s.Perm())
	case "append":
		return p.write(s.Kind(), s.Append, v.Fill(s.Text), os.O_APPEND, 0)
	case "report":
		return p.write(s.Kind(), ReportPath(p.Call.Role, v), v.Fill(*s.Report), os.O_TRUNC, 0)
	case "delete":
		p.tool(s.Kind(), s.Delete)
		return p.inWorkspace(func(root *os.Root) error { return root.RemoveAll(s.Delete) })
	case "run":
		return p.run(ctx, v.Fill(s.Run), s.Expect)
	case "sleep":
		p.tool(s.Kind(), time.Duration(s.Sleep).String())
		return proc.Pause(ctx, time.Duration(s.Sleep))
	case "print":
		p.tool(s.Kind(), fmt.Sprintf("%d bytes", s.Print))
		p.print(int64(s.Print))
	default:
		return fmt.Errorf("internal error: a step without an action")
	}
	return nil
}

// tool says what is about to be done; abl shows it while it lasts.
func (p *Player) tool(name, detail string) {
	p.record(Record{Type: RecordTool, Tool: name, Text: detail})
	p.out.Flush()
}

// inWorkspace gives f the workspace as a root that no link leads out of.
func (p *Player) inWorkspace(f func(*os.Root) error) error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return fmt.Errorf("cannot open the workspace: %w", err)
	}
	defer root.Close()
	return f(root)
}

// write writes text to a file, with how as the further flag, and makes the
// folders on the way. A perm of 0 leaves what is there, or gives 0644.
func (p *Player) write(kind, name, text string, how int, perm uint32) error {
	p.tool(kind, name)
	return p.inWorkspace(func(root *os.Root) error {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|how, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := io.WriteString(f, text); err != nil {
			return err
		}
		if perm != 0 {
			if err := f.Chmod(os.FileMode(perm)); err != nil {
				return err
			}
		}
		return f.Close()
	})
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
	code, err := proc.Run(ctx, cmd, stopGrace)
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
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			p.record(Record{Type: RecordOutput, Text: strings.TrimSuffix(string(line), "\n")})
			p.out.Flush()
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}
