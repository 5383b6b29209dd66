package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles/boundary"
)

// unproving is an engine that skips the proof of a container: it asks the engine nothing, and
// nothing runs inside.
type unproving struct {
	sandbox.Engine
	in      string        // the call's directory inside the container
	created time.Time     // time of creation
	left    time.Duration // time from the proof to the start
}

func (e *unproving) Create(ctx context.Context, container sandbox.ContainerConfig) (string, error) {
	for _, m := range container.Mounts {
		if m.Target == helper.In {
			e.in = m.Source
		}
	}
	path := filepath.Join(e.in, filepath.Base(helper.Run))
	data, err := os.ReadFile(path)
	var spec helper.RunSpec
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	spec.Probe = ""
	if data, merr := json.Marshal(spec); err == nil && merr == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		return "", err
	}
	id, err := e.Engine.Create(ctx, container)
	e.created = time.Now()
	return id, err
}

func (e *unproving) Start(ctx context.Context, name string) error {
	e.left += time.Since(e.created)
	return e.Engine.Start(ctx, name)
}

func (*unproving) Prove(context.Context, sandbox.ContainerConfig) (sandbox.Proof, error) {
	return sandbox.Proof{{Name: "not looked at", OK: true}}, nil
}

func (*unproving) Env(context.Context, string) (map[string]string, error) { return nil, nil }

// Head reports immediately that every check inside the container has passed.
func (e *unproving) Head(context.Context, string, int64) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(e.in, filepath.Base(helper.Probe)))
	var spec helper.ProbeSpec
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err != nil {
		return nil, err
	}
	var all sandbox.Proof
	for _, name := range boundary.Missing(spec, nil) {
		all = append(all, sandbox.Check{Name: name, OK: true})
	}
	line, err := json.Marshal(helper.Probed{Proof: all})
	return append(line, '\n'), err
}

// BenchmarkProofAndSweep measures the share of two steps in a role call whose agent does nothing:
// the proof of its boundary, and the sweep of its workspace. It compares with the same call
// without the two. The limit is 15 %.
func BenchmarkProofAndSweep(b *testing.B) {
	r := newRig(b)
	r.call(b)
	with, bare := *r.runner, *r.runner
	free := &unproving{Engine: r.engine}
	bare.Containers = r.containers(free)
	var calls, parts []float64
	for round := 0; b.Loop(); round++ {
		r.edit(round)
		var took [2]time.Duration
		for k := range 2 {
			which := (k + round) % 2
			r.runner, r.unswept, free.left = &with, false, 0
			if which == 1 {
				r.runner, r.unswept = &bare, true
			}
			begun := time.Now()
			r.call(b)
			took[which] = time.Since(begun) - free.left
		}
		calls = append(calls, took[0].Seconds()*1000)
		parts = append(parts, 100*float64(took[0]-took[1])/float64(took[0]))
	}
	b.ReportMetric(median(calls), "call-ms")
	b.ReportMetric(median(parts), "%-of-call")
}
