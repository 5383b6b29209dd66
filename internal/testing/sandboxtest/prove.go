package sandboxtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
)

// Prove compares the created container with the intended one by their descriptions.
func (e *Engine) Prove(ctx context.Context, b sandbox.ContainerConfig) (p sandbox.Proof, err error) {
	err = e.call("Prove", b.Name, func() error {
		made, err := e.find(b.Name)
		if err != nil {
			return about(err, "cannot verify container %q", b.Name)
		}
		env := "as meant"
		if !slices.Equal(b.Env, made.Env) {
			env = "another"
		}
		p = sandbox.Proof{
			sandbox.Same("state", string(sandbox.Created), string(made.status.State)),
			sandbox.Same("environment", "as meant", env),
			sandbox.Same("box", describe(b), describe(made.ContainerConfig)),
		}
		return nil
	})
	return p, err
}

// describe returns a description of a container without the values of its environment.
func describe(b sandbox.ContainerConfig) string {
	b.Env = nil
	b.Mounts = slices.Clone(b.Mounts) // their order has no meaning
	slices.SortFunc(b.Mounts, func(x, y sandbox.Mount) int { return cmp.Compare(x.Target, y.Target) })
	return fmt.Sprintf("%+v", b)
}

// opening returns the first output of a container's program: abl's runner and its broker print
// the proof of their surroundings, and a holder prints that it is ready.
func (e *Engine) opening(b sandbox.ContainerConfig) []byte {
	if len(b.Argv) > 0 && path.Base(b.Argv[0]) == helper.HelperHolder {
		return []byte("ready\n")
	}
	if listens(b) {
		return []byte(`{"word":"word","hosts":["192.0.2.1","fe80::1%eth0"],"tcp":"1001","udp":"1002"}` + "\n")
	}
	if !speaks(b) {
		return nil
	}
	if e.Opening != nil {
		return []byte(e.Opening(b))
	}
	return []byte(e.Proven(b))
}

// listens reports whether a container listens on the engine's machine.
func listens(b sandbox.ContainerConfig) bool { return b.Reach.Host && b.Stdin }

// speaks reports whether process 1 of a container prints its surroundings first and its exit
// last.
func speaks(b sandbox.ContainerConfig) bool {
	return len(b.Argv) > 0 && (path.Base(b.Argv[0]) == helper.HelperRun || path.Base(b.Argv[0]) == helper.HelperBroker)
}

// Proven returns the line of a container with a valid proof.
func (e *Engine) Proven(b sandbox.ContainerConfig) string {
	line, err := json.Marshal(helper.Probed{Proof: Answer(b)})
	if err != nil {
		return ""
	}
	return string(line) + "\n"
}

// Subnets returns an invented address range for each existing network.
func (e *Engine) Subnets(_ context.Context, networks []string) (all []sandbox.Subnet, err error) {
	err = e.call("Subnets", "", func() error {
		for i, name := range networks {
			if _, ok := e.networks[name]; ok {
				all = append(all, sandbox.Subnet{Range: fmt.Sprintf("10.231.%d.0/28", i)})
			}
		}
		return nil
	})
	return all, err
}

// Answer returns the proof of a probe whose checks all pass.
func Answer(b sandbox.ContainerConfig) (p sandbox.Proof) {
	at := Host(b, helper.Probe)
	data, err := hostfs.Read(path.Dir(at), path.Base(at), 1<<20)
	var spec helper.ProbeSpec
	if err != nil || json.Unmarshal(data, &spec) != nil {
		return sandbox.Proof{{Name: helper.Probe, Want: "readable", Got: "not"}}
	}
	for _, name := range spec.Checks() {
		p = append(p, sandbox.Same(name, "", ""))
	}
	return p
}

// Head returns the first line of a container's log as soon as it is complete.
func (e *Engine) Head(ctx context.Context, name string, max int64) (line []byte, err error) {
	for {
		var more, over chan struct{}
		err = e.call("Head", name, func() error {
			b, err := e.find(name)
			if err != nil {
				return err
			}
			if b.status.State == sandbox.Created {
				return fmt.Errorf("it never started")
			}
			line, more, over = nil, b.printed, b.over
			text, _, whole := bytes.Cut(b.log, []byte("\n"))
			if whole {
				text = b.log[:len(text)+1]
			}
			if whole || b.status.State == sandbox.Exited || int64(len(text)) >= max {
				line = append(line, text[:min(int64(len(text)), max)]...)
				more = nil
			}
			return nil
		})
		if err != nil || more == nil {
			return line, about(err, "cannot read the first line of container %q", name)
		}
		select {
		case <-more:
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
