package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/child"
	"abl/internal/failpoint"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/orchestrator"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/agent"
)

// host runs agents and programs as the person, on this machine.
type host struct {
	*purse
	w     *work
	agent cliAgent
	calls string // folder of the records
	notes notes  // which processes run
}

func openHost(w *work, s learner.State, a cliAgent) (*host, error) {
	p, err := openPurse(w, s)
	if err != nil {
		return nil, err
	}
	h := &host{p, w, a, p.project.Calls(), w.notes()}
	_, err = h.notes.endOrphans()
	return h, err
}

// onPath wants an agent's CLI to be installed.
func onPath(a cliAgent) error {
	if a.host == nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot run the %s agent on the host: %w", a.name, errNoHost), "leave --runtime out")
	}
	cmd, err := a.host(agent.Call{Model: "m"})
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	if _, err := exec.LookPath(cmd.Argv[0]); err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot run %s: %w", a.name, err), "install it, or leave --runtime out and take an agent that has a container")
	}
	return nil
}

// ended is how a process ended.
type ended struct {
	Class   roles.Class `json:"class"`
	Reason  string      `json:"reason,omitempty"`
	Exit    int         `json:"exit"`
	SpentMS int64       `json:"duration_ms"`
}

// Ask implements learner.Asker. The prompt goes in by a file: an argument may not
// be longer than 128 KiB.
func (h *host) Ask(ctx context.Context, a learner.Ask) (learner.Answer, error) {
	dir := filepath.Join(h.calls, a.Key)
	call := agent.Call{ID: a.Key, Role: string(a.Step), Model: a.Model, Prompt: filepath.Join(dir, "prompt.md"), Dir: a.Dir}
	was, ok, err := readEnd(dir)
	if err != nil {
		return learner.Answer{}, err
	}
	if !ok {
		if was, err = h.call(ctx, a, call); err != nil {
			return learner.Answer{}, err
		}
	}
	failpoint.Here("learn.ended")
	said, err := h.hear(call, was)
	if err != nil {
		return learner.Answer{}, err
	}
	o := roles.Outcome{
		Key: a.Key, Role: string(a.Step), Agent: a.Agent, Model: a.Model, Class: said.end.Class, Ended: time.Now(), Duration: was.SpentMS,
		Usage: said.usage, Source: roles.CountedByCLI,
	}
	err = h.book.Append(orchestrator.Rows(a.Session, a.Cycle, o))
	failpoint.Here("learn.entered")
	return learner.Answer{Class: said.end.Class, Reason: said.end.Reason, SpentMS: was.SpentMS, Text: said.text}, err
}

// call runs the CLI to its end, which is on disk then.
func (h *host) call(ctx context.Context, a learner.Ask, call agent.Call) (was ended, err error) {
	if err := h.admit(a.Key); err != nil {
		return was, err
	}
	start, err := h.agent.host(call)
	if err != nil {
		return was, err
	}
	dir := filepath.Dir(call.Prompt)
	if err := errors.Join(a.Begin(), os.MkdirAll(dir, 0o755), os.WriteFile(call.Prompt, []byte(a.Prompt), 0o644)); err != nil {
		return was, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), start.Argv[0], start.Argv[1:]...) // with the person's keys, which it needs
	cmd.Env = os.Environ()
	for name, value := range start.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if was, _, err = h.run(ctx, cmd, a.Dir, dir, call.Prompt, a.Limit); err != nil {
		return was, err
	}
	if was.Class == roles.Running {
		was.Class, was.Reason = roles.Timeout, fmt.Sprintf("it did not end within %s, retries included", learner.CallTime)
	}
	return was, writeEnd(dir, was)
}

// hear reads what is kept of a call.
func (h *host) hear(call agent.Call, was ended) (heard, error) {
	dir := filepath.Dir(call.Prompt)
	out, err := tail(dir, "stdout", maxOutput)
	if err != nil {
		return heard{}, err
	}
	const most = 1 << 20
	if used, err := hostfs.Read(dir, usageFile, most); err == nil {
		out += "\n" + string(bytes.ReplaceAll(used, []byte("\n"), nil)) + "\n"
	}
	return hear(h.agent.reader(call), []byte(out), was), nil
}

// Try implements learner.Trier. What the program does to the cycle's folder stays.
func (h *host) Try(ctx context.Context, t learner.Trial) (learner.Ran, error) {
	dir := filepath.Join(h.calls, t.Key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return learner.Ran{}, err
	}
	cmd := child.Command(context.WithoutCancel(ctx), "bash", "run.sh")
	cmd.Env = append(cmd.Env, "PORT=3000")
	e, ports, err := h.run(ctx, cmd, t.Dir, dir, os.DevNull, learner.RunTime)
	if err != nil {
		return learner.Ran{}, err
	}
	ran, err := judgeRun(roles.Outcome{Class: e.Class, Reason: e.Reason, Exit: e.Exit, Ports: ports})
	if err == nil {
		ran.Output, err = printed(roles.Record{Dir: dir})
	}
	return ran, err
}

// run takes a process to its end and ends all that it leaves behind. ports are
// those on which it listened when its time was over.
func (h *host) run(ctx context.Context, cmd *exec.Cmd, work, rec, stdin string, limit time.Duration) (e ended, ports string, err error) {
	in, err := os.Open(stdin)
	if err != nil {
		return e, "", err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(rec, "stdout"))
	if err != nil {
		return e, "", err
	}
	defer out.Close()
	errs, err := os.Create(filepath.Join(rec, "stderr"))
	if err != nil {
		return e, "", err
	}
	defer errs.Close()
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = work, in, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begun := time.Now()
	open, err := gated(cmd)
	if err != nil {
		return e, "", err
	}
	forget, err := h.notes.add("", cmd.Process.Pid)
	defer forget()
	open()
	e, ports = h.watch(ctx, cmd, []*os.File{out, errs}, limit)
	e.SpentMS = time.Since(begun).Milliseconds()
	return e, ports, errors.Join(err, h.w.in.Outlet.Keep(out.Name()), h.w.in.Outlet.Keep(errs.Name()))
}

// gate holds a program back until somebody writes to descriptor 3, and lets it end
// where nobody is left to.
const gate = `read -r go <&3 || exit 125; exec 3<&-; exec "$@"`

// gated starts a process that does nothing before open: it is noted by then, so that
// whoever kills abl leaves none of which nobody knows.
func gated(cmd *exec.Cmd) (open func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Args = append([]string{"sh", "-c", gate, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = "/bin/sh", []*os.File{r}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return func() {
		_, _ = w.WriteString("\n") // a process that ended by itself needs none
		w.Close()
	}, nil
}

// watch waits for the end, or brings it about.
func (h *host) watch(ctx context.Context, cmd *exec.Cmd, files []*os.File, limit time.Duration) (e ended, ports string) {
	done := proc.Wait(cmd)
	over, look := time.NewTimer(limit), time.NewTicker(100*time.Millisecond)
	defer over.Stop()
	defer look.Stop()
	pid := cmd.Process.Pid
	end := func(class roles.Class, why string) ended {
		proc.Stop(pid, done, time.Second)
		<-done
		return ended{Class: class, Reason: why, Exit: proc.Code(cmd)}
	}
	for {
		select {
		case <-done:
			proc.Kill(pid) // what it left in the background
			if code := proc.Code(cmd); code != 0 {
				return ended{Class: roles.Failed, Reason: fmt.Sprintf("it ended with exit code %d", code), Exit: code}, ""
			}
			return ended{Class: roles.Done}, ""
		case <-ctx.Done():
			return end(roles.Interrupted, "stopped on request"), ""
		case <-over.C:
			ports = portsOf(pid)
			return end(roles.Running, ""), ports
		case <-look.C:
			for _, f := range files {
				if fi, err := f.Stat(); err == nil && fi.Size() > programPrints {
					return end(roles.Flood, fmt.Sprintf("it printed more than %d MiB", programPrints>>20)), ""
				}
			}
		}
	}
}

// portsOf are the TCP ports on which a process and what it started listen.
func portsOf(pid int) string {
	ports, known := proc.Ports(pid)
	if !known {
		return learner.PortsUnknown
	}
	return strings.Trim(fmt.Sprint(ports), "[]")
}

const endFile = "end.json"

func readEnd(dir string) (e ended, ok bool, err error) {
	data, err := hostfs.Read(dir, endFile, 1<<20)
	if errors.Is(err, hostfs.ErrAbsent) {
		return e, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	return e, err == nil, err
}

func writeEnd(dir string, e ended) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return hostfs.Write(filepath.Join(dir, endFile), append(data, '\n'), 0o644)
}
