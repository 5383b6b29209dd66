package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/atomicfile"
	"abl/internal/child"
	"abl/internal/proc"
	"abl/internal/safefile"
	"abl/orchestrator/learner"
	"abl/orchestrator/ledger"
	"abl/roles"
	"abl/roles/agent"
)

// host runs agents and programs as the person, on this machine.
type host struct {
	w     *work
	agent cliAgent
	calls string // folder of the records
	runs  string // folder that names the processes that are running
}

func newHost(w *work, a cliAgent) *host {
	return &host{w, a, filepath.Join(w.home.Private(), "logs", "calls"), w.runs()}
}

// check wants the agent's CLI to be installed.
func (h *host) check() error {
	if h.agent.host == nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot run the %s agent on the host: %w", h.agent.name, errNoHost), "leave --runtime out")
	}
	cmd, err := h.agent.host(agent.Call{Model: "m"})
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	if _, err := exec.LookPath(cmd.Argv[0]); err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot run %s: %w", h.agent.name, err), "install it, or leave --runtime out and take an agent that has a container")
	}
	return nil
}

// ended is how a process ended.
type ended struct {
	Class   roles.Class `json:"class"`
	Reason  string      `json:"reason,omitempty"`
	Exit    int         `json:"exit"`
	SpentMS int64       `json:"duration_ms"`
	Session string      `json:"-"`
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
		if err := errors.Join(a.Begin(), os.MkdirAll(dir, 0o755), os.WriteFile(call.Prompt, []byte(a.Prompt), 0o644)); err != nil {
			return learner.Answer{}, err
		}
		start, err := h.agent.host(call)
		if err != nil {
			return learner.Answer{}, err
		}
		cmd := exec.CommandContext(context.WithoutCancel(ctx), start.Argv[0], start.Argv[1:]...) // with the person's keys, which it needs
		cmd.Env = os.Environ()
		for name, value := range start.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		if was, err = h.run(ctx, cmd, a.Dir, dir, call.Prompt, a.Limit); err != nil {
			return learner.Answer{}, err
		}
		if was.Class == roles.Running {
			was.Class, was.Reason = roles.Timeout, fmt.Sprintf("it did not end within %s, retries included", learner.CallTime)
		}
		if err := errors.Join(writeEnd(dir, was), h.count(a, was)); err != nil {
			return learner.Answer{}, err
		}
	}
	text, err := tail(dir, "stdout", maxOutput)
	if h.agent.reader != nil {
		text = lastWords(h.agent.reader(call), []byte(text))
	}
	return learner.Answer{Class: was.Class, Reason: was.Reason, SpentMS: was.SpentMS, Text: text}, err
}

// count notes in the ledger that nobody counted what a call used.
func (h *host) count(a learner.Ask, e ended) error {
	l := ledger.Open(filepath.Join(h.w.home.Private(), "logs", "tokens.csv"))
	_, err := l.Append([]ledger.Row{{
		Timestamp: ledger.Stamp(time.Now()), Phase: fmt.Sprint(a.Session), Step: fmt.Sprint(a.Cycle), Role: string(a.Step), Model: a.Model,
		Source: ledger.Nobody, CallID: a.Key, Agent: a.Agent, DurationMS: &e.SpentMS, Outcome: string(e.Class),
	}})
	return err
}

// Try implements learner.Trier. What the program does to the cycle's folder stays.
func (h *host) Try(ctx context.Context, t learner.Trial) (learner.Ran, error) {
	dir := filepath.Join(h.calls, t.Key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return learner.Ran{}, err
	}
	cmd := child.Command(context.WithoutCancel(ctx), "bash", "run.sh")
	cmd.Env = append(cmd.Env, "PORT=3000")
	e, err := h.run(ctx, cmd, t.Dir, dir, os.DevNull, learner.RunTime)
	if err != nil {
		return learner.Ran{}, err
	}
	ran, err := judgeRun(roles.Outcome{Class: e.Class, Reason: e.Reason, Exit: e.Exit, Ports: learner.PortsUnknown})
	if err == nil {
		ran.Output, err = printed(roles.Record{Dir: dir})
	}
	return ran, err
}

// run takes a process to its end and ends all that it leaves behind.
func (h *host) run(ctx context.Context, cmd *exec.Cmd, work, rec, stdin string, limit time.Duration) (e ended, err error) {
	in, err := os.Open(stdin)
	if err != nil {
		return e, err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(rec, "stdout"))
	if err != nil {
		return e, err
	}
	defer out.Close()
	errs, err := os.Create(filepath.Join(rec, "stderr"))
	if err != nil {
		return e, err
	}
	defer errs.Close()
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = work, in, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return e, err
	}
	forget, err := remember(h.runs, "", cmd.Process.Pid)
	defer forget()
	e = h.watch(ctx, cmd, []*os.File{out, errs}, limit)
	e.SpentMS = time.Since(begun).Milliseconds()
	return e, errors.Join(err, h.w.in.Outlet.Keep(out.Name()), h.w.in.Outlet.Keep(errs.Name()))
}

// watch waits for the end, or brings it about.
func (h *host) watch(ctx context.Context, cmd *exec.Cmd, files []*os.File, limit time.Duration) (e ended) {
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
				return ended{Class: roles.Failed, Reason: fmt.Sprintf("it ended with exit code %d", code), Exit: code}
			}
			return ended{Class: roles.Done}
		case <-ctx.Done():
			return end(roles.Interrupted, "stopped on request")
		case <-over.C:
			return end(roles.Running, "")
		case <-look.C:
			for _, f := range files {
				if fi, err := f.Stat(); err == nil && fi.Size() > programPrints {
					return end(roles.Flood, fmt.Sprintf("it printed more than %d MiB", programPrints>>20))
				}
			}
		}
	}
}

// remember notes which process runs, for stop.sh: by its number and the time when
// it was started, so that no later process of that number is taken for it.
func remember(runs, kind string, pid int) (forget func(), err error) {
	path := filepath.Join(runs, kind+fmt.Sprint(pid))
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil // it ended, or this is no Linux
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(runs, 0o755), atomicfile.Write(path, []byte(startOf(string(stat))+"\n"), 0o644))
	}
	return func() { os.Remove(path) }, err
}

// startOf is the time in a process's stat at which it was started: the twentieth
// field after its name, which is in parentheses and may hold anything.
func startOf(stat string) string {
	const start = 19
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) <= start {
		return "unknown"
	}
	return f[start]
}

const endFile = "end.json"

func readEnd(dir string) (e ended, ok bool, err error) {
	data, err := safefile.Read(dir, endFile, 1<<20)
	if errors.Is(err, safefile.ErrAbsent) {
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
	return atomicfile.Write(filepath.Join(dir, endFile), append(data, '\n'), 0o644)
}
