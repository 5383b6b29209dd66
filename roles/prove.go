package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/roles/boundary"
)

// proving takes one box through its proof.
type proving struct {
	*Boxes
	box    sandbox.Box
	dir    string // takes the proof; the folder in below it is what the box sees at helper.In
	rule   rule
	server *boundary.HostServer // what listens on this machine, from before to after; nil where nobody does
	ranges []string             // of the networks that it may be on
	secret *redact.Sanitizer    // knows what the box must not hold; nil for a box of the person's own settings
}

// probeTime is how long a box may take until its first program has looked around.
const probeTime = 30 * time.Second

// maxProof bounds the line that says what it found, in bytes.
const maxProof = 256 << 10

// before compares the box, which was made and not started, with its intent, and
// lays out what its first program has to look for. It listens on this machine
// until done is called, which may be at any time.
func (p *proving) before(ctx context.Context) (done func(), err error) {
	done = func() {}
	b := Boundary{Box: p.box.Name, At: time.Now().UTC(), Weak: p.Net.Weak}
	var env map[string]string
	var eerr, rerr error
	var asked sync.WaitGroup // side by side: the call waits for it
	asked.Go(func() { env, eerr = p.Engine.Env(ctx, p.box.Name) })
	asked.Go(func() { p.ranges, rerr = p.Engine.Ranges(ctx, p.rule.reaches()) })
	b.Made, err = p.Engine.Prove(ctx, p.box)
	asked.Wait()
	if err := errors.Join(err, eerr, rerr); err != nil {
		return done, err
	}
	b.Made = append(b.Made, p.rule.check(p.box)...)
	if p.secret != nil {
		b.Made = append(b.Made, p.secrets(env))
	}
	if err := b.Made.Err(); err != nil {
		b.Failed = err.Error()
		return done, errors.Join(err, p.save(b))
	}
	server, err := p.listen(ctx)
	if err != nil {
		return done, err
	}
	p.server = server
	if server != nil {
		done = sync.OnceFunc(server.Close)
	}
	err = errors.Join(p.layOut(env, server), p.note(b))
	failpoint.Here("probe.laid")
	return done, err
}

// listen starts to listen on this machine. There is none where abl cannot, and
// the person allowed that, or where the box has no network to come here by.
func (p proving) listen(ctx context.Context) (*boundary.HostServer, error) {
	if p.Net.Away || p.rule.cutOff() {
		return nil, nil
	}
	server, err := boundary.ListenOnHost(ctx)
	if err != nil && p.Net.Weak != "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrUnproven, err)
	}
	return server, nil
}

// secrets checks that the box is given none of those that abl knows.
func (p proving) secrets(env map[string]string) sandbox.Check {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if p.secret.Redact(env[name]) != env[name] {
			names = append(names, name)
		}
	}
	return sandbox.Same("secrets in its environment", "", strings.Join(names, " "))
}

// layOut writes what has to be found inside.
func (p proving) layOut(env map[string]string, server *boundary.HostServer) error {
	const most = 1000
	entries, err := hostfs.List(p.dir, "in", most)
	if err != nil {
		return err
	}
	name := filepath.Base(helper.Probe)
	files := []string{name}
	for _, e := range entries {
		if e.Name != name {
			files = append(files, e.Name)
		}
	}
	ruled := p.rule.inside(p.box)
	spec := boundary.Inside(ruled, env, files, p.rule.absent)
	if !p.rule.cutOff() {
		spec.Net = boundary.Net(server, p.Net.Weak != "")
		spec.Net.Own = p.ranges
	}
	if !p.Net.Other {
		if err := boundary.Identify(&spec, ruled.Mounts); err != nil {
			return err
		}
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return writeReadable(p.laid(), data)
}

// laid is what the first program in the box reads.
func (p proving) laid() string { return filepath.Join(p.dir, "in", filepath.Base(helper.Probe)) }
