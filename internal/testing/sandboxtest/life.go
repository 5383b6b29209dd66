package sandboxtest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"abl/internal/sandbox"
)

// Info returns Is.
func (e *Engine) Info(context.Context) (sandbox.Info, error) {
	return e.Is, e.call("Info", "", func() error { return nil })
}

// Create creates a container without starting it.
func (e *Engine) Create(ctx context.Context, b sandbox.ContainerConfig) (id string, err error) {
	err = e.call("Create", b.Name, func() error {
		if owner, ok := e.containers[b.Name]; ok {
			return fmt.Errorf("cannot create container %q: %w: id %s", b.Name, sandbox.ErrExists, owner.status.ID)
		}
		if err := e.check(b); err != nil {
			return fmt.Errorf("cannot create container %q: %w", b.Name, err)
		}
		e.made++
		id = fmt.Sprintf("%012x", e.made)
		if e.containers == nil {
			e.containers = map[string]*container{}
		}
		status := sandbox.Status{ID: id, Name: b.Name, State: sandbox.Created, Labels: maps.Clone(b.Labels),
			Env: map[string]string{}}
		for _, line := range b.Env {
			key, value, _ := strings.Cut(line, "=")
			status.Env[key] = value
		}
		e.containers[b.Name] = &container{
			ContainerConfig: b,
			status:          status,
			files:           map[string][]byte{},
			over:            make(chan struct{}),
			printed:         make(chan struct{}),
			fed:             make(chan []byte, feeds),
		}
		return nil
	})
	return id, err
}

// Start starts a container and its script. Starting a running container is not an error.
func (e *Engine) Start(ctx context.Context, name string) error {
	var run func()
	err := e.call("Start", name, func() error {
		b, err := e.find(name)
		if err != nil || b.status.State == sandbox.Running {
			return about(err, "cannot start container %q", name)
		}
		if err := e.joinable(b.Reach.Join); err != nil {
			return about(err, "cannot start container %q", name)
		}
		b.status.State, b.status.StartedAt, b.status.FinishedAt = sandbox.Running, e.now(), time.Time{}
		b.over = make(chan struct{})
		b.print(string(e.opening(b.ContainerConfig)))
		if script := e.scriptOf(b.ContainerConfig); script != nil {
			run = func() { e.play(b, script) }
		}
		return nil
	})
	if run != nil && e.Sync {
		run()
	} else if run != nil {
		go run()
	}
	return err
}

func (e *Engine) joinable(holder string) error {
	if holder == "" {
		return nil
	}
	b, err := e.find(holder)
	if err == nil && b.status.State != sandbox.Running {
		err = errors.New("it does not run")
	}
	return about(err, "cannot join the network of %q", holder)
}

func (e *Engine) scriptOf(b sandbox.ContainerConfig) Script {
	longest := ""
	for prefix := range e.Scripts {
		if strings.HasPrefix(b.Name, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	for _, key := range []string{longest, b.Labels[sandbox.LabelRole], b.Labels[sandbox.LabelKind]} {
		if script, ok := e.Scripts[key]; ok && key != "" {
			return script
		}
	}
	return e.Scripts[""]
}

// play records the script's exit, unless the container was stopped or removed before. Exit code
// 137 means a kill from outside, so the program cannot print its exit.
func (e *Engine) play(b *container, script Script) {
	over := b.over
	exit := script(b.ContainerConfig)
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.over != over || b.status.State != sandbox.Running {
		return
	}
	if speaks(b.ContainerConfig) && len(b.log) > 0 && exit.Code != killed && !bytes.Contains(b.log, []byte(`{"exit":`)) {
		b.print(fmt.Sprintf("{\"exit\":%d}\n", exit.Code))
	}
	e.end(b, exit)
}

// killed is the exit code of a killed container.
const killed = 137

func (e *Engine) end(b *container, exit sandbox.Exit) {
	if b.status.State != sandbox.Running {
		return
	}
	b.forced = exit.Forced
	b.status.State, b.status.FinishedAt = sandbox.Exited, e.now()
	b.status.ExitCode, b.status.OOMKilled = exit.Code, exit.OOMKilled
	close(b.over)
}

// Status returns the state of a container.
func (e *Engine) Status(ctx context.Context, name string) (s sandbox.Status, err error) {
	err = e.call("Status", name, func() error {
		b, err := e.find(name)
		if err != nil {
			return about(err, "cannot inspect container %q", name)
		}
		s = b.status
		return nil
	})
	return s, err
}

// Wait waits until a container has ended and returns its exit.
func (e *Engine) Wait(ctx context.Context, name string) (exit sandbox.Exit, err error) {
	var b *container
	var over chan struct{}
	err = e.call("Wait", name, func() (err error) {
		if b, err = e.find(name); err != nil {
			return about(err, "cannot wait for container %q", name)
		}
		if b.status.State == sandbox.Created {
			return fmt.Errorf("cannot wait for container %q: it never started", name)
		}
		over = b.over
		return nil
	})
	if err != nil {
		return exit, err
	}
	select {
	case <-over:
	case <-ctx.Done():
		return exit, ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.containers[name] != b {
		return exit, fmt.Errorf("cannot wait for container %q: %w", name, sandbox.ErrNotFound)
	}
	return sandbox.Exit{Code: b.status.ExitCode, OOMKilled: b.status.OOMKilled, Forced: b.forced}, nil
}

// Stop ends a container with exit code 143.
func (e *Engine) Stop(ctx context.Context, name string, grace time.Duration) error {
	if b, ok := e.Config(name); ok && e.Stopped != nil {
		e.Stopped(b)
	}
	return e.halt("Stop", "stop", name, 143)
}

// Kill ends a container with exit code 137, as something other than abl does.
func (e *Engine) Kill(ctx context.Context, name string) error {
	return e.halt("Kill", "kill", name, killed)
}

func (e *Engine) halt(method, verb, name string, code int) error {
	return e.call(method, name, func() error {
		b, err := e.find(name)
		if err != nil {
			return about(err, "cannot "+verb+" container %q", name)
		}
		e.end(b, sandbox.Exit{Code: code})
		return nil
	})
}

// Remove ends and deletes a container. Removing a missing container is not an error.
func (e *Engine) Remove(ctx context.Context, name string) error {
	return e.call("Remove", name, func() error {
		e.drop(name)
		return nil
	})
}

func (e *Engine) drop(name string) {
	b, err := e.find(name)
	if err != nil {
		return
	}
	delete(e.containers, b.Name)
	e.end(b, sandbox.Exit{Code: killed})
}

// find accepts a name or an id, like engines do.
func (e *Engine) find(name string) (*container, error) {
	if b, ok := e.containers[name]; ok {
		return b, nil
	}
	for _, b := range e.containers {
		if b.status.ID == name {
			return b, nil
		}
	}
	return nil, sandbox.ErrNotFound
}

// List returns the containers with the labels, sorted by name.
func (e *Engine) List(ctx context.Context, labels map[string]string) (out []sandbox.Status, err error) {
	err = e.call("List", show(labels), func() error {
		out = e.matching(labels)
		return nil
	})
	return out, err
}

func (e *Engine) matching(labels map[string]string) []sandbox.Status {
	out := []sandbox.Status{}
	for _, b := range e.containers {
		if has(b.Labels, labels) {
			out = append(out, b.status)
		}
	}
	slices.SortFunc(out, func(a, b sandbox.Status) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Logs returns the last max bytes of a container's log.
func (e *Engine) Logs(ctx context.Context, name string, max int64) (out []byte, err error) {
	err = e.call("Logs", name, func() error {
		b, err := e.find(name)
		if err != nil {
			return about(err, "cannot read the log of container %q", name)
		}
		out = slices.Clone(b.log)
		if int64(len(out)) > max {
			out = out[int64(len(out))-max:]
		}
		return nil
	})
	return out, err
}

// CopyIn stores the regular files of the tar archive that tree writes. Copied returns them.
func (e *Engine) CopyIn(ctx context.Context, name, dir string, tree func(io.Writer) error) error {
	stream, in := io.Pipe()
	defer stream.Close()
	go func() { in.CloseWithError(tree(in)) }()
	return e.call("CopyIn", name+" "+dir, func() error {
		b, err := e.find(name)
		if err != nil {
			return about(err, "cannot copy to %q in container %q", dir, name)
		}
		for r := tar.NewReader(stream); ; {
			h, err := r.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return about(err, "cannot copy to %q in container %q", dir, name)
			}
			if b.files[path.Join(dir, h.Name)], err = io.ReadAll(r); err != nil {
				return about(err, "cannot copy to %q in container %q", dir, name)
			}
		}
	})
}

// about prefixes an error with an action and its object. It returns nil for nil.
func about(err error, act string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(act+": %w", append(args, err)...)
}
