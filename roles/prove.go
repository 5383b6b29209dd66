package roles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles/boundary"
)

// proving takes one box from its intent to the word of its first program.
type proving struct {
	*Boxes
	project state.Project
	box     sandbox.Box
	// Takes the proof; the folder in below it is what the box sees at helper.In.
	dir  string
	rule rule
	// What listens on this machine; nil where nobody can, or the box has no network to come here by.
	server *boundary.HostServer
	ranges []string // of the networks that it may be on
	// Knows what the box must not hold; nil for a box of the person's own settings.
	secret *redact.Sanitizer
}

// probeTime is how long a box may take until its first program has looked around.
const probeTime = 30 * time.Second

// maxProof bounds the line that says what it found, in bytes.
const maxProof = 256 << 10

// launch makes the box and has fill put in what no mount shows, proves it, and starts it
// once ready has been told. What is asked of the engine is seen through, lest it makes a box
// that no sweep has seen.
func (p *proving) launch(ctx context.Context, fill, ready func() error) error {
	whole, whose := context.WithoutCancel(ctx), p.box.Labels[sandbox.LabelKind]
	isCall := whose == "role"
	if isCall {
		whose = p.box.Labels[sandbox.LabelRole]
	}
	if err := checkSources(p.project, p.box.Mounts); err != nil {
		return err
	}
	if _, err := p.Engine.Create(whole, p.box); err != nil {
		return fmt.Errorf("cannot make the %s's container: %w", whose, err)
	}
	if err := fill(); err != nil {
		return err
	}
	err := cmp.Or(p.before(whole), ctx.Err())
	defer p.server.Close()
	if err == nil {
		err = ready()
	}
	if err != nil {
		return err
	}
	if err := p.Engine.Start(whole, p.box.Name); err != nil {
		return fmt.Errorf("cannot start the %s: %w", whose, err)
	}
	if isCall {
		failpoint.Here("call.started")
	}
	return p.after(whole, true)
}

// before compares the box, which was made and not started, with its intent, and
// lays out what its first program has to look for. From then on this machine listens.
func (p *proving) before(ctx context.Context) (err error) {
	b := Boundary{Box: p.box.Name, At: time.Now().UTC(), Weak: p.Net.Weak}
	var env map[string]string
	var eerr, rerr error
	var asked sync.WaitGroup // side by side: the call waits for it
	asked.Go(func() { env, eerr = p.Engine.Env(ctx, p.box.Name) })
	asked.Go(func() { p.ranges, rerr = p.Engine.Ranges(ctx, p.rule.reaches()) })
	b.Made, err = p.Engine.Prove(ctx, p.box)
	asked.Wait()
	if err := errors.Join(err, eerr, rerr); err != nil {
		return err
	}
	b.Made = append(b.Made, p.rule.check(p.box)...)
	if p.secret != nil {
		b.Made = append(b.Made, p.secrets(env))
	}
	if err := b.Made.Err(); err != nil {
		b.Failed = err.Error()
		return errors.Join(err, p.keep(b))
	}
	if !p.Net.Away && !cutOff(p.box) {
		p.server, err = boundary.ListenOnHost(ctx)
	}
	if err != nil && p.Net.Weak == "" {
		return fmt.Errorf("%w: cannot listen for what must not arrive: %w", sandbox.ErrUnproven, err)
	}
	err = errors.Join(p.layOut(env, p.server), p.keep(b))
	failpoint.Here("probe.laid")
	return err
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

// layOut writes what has to be found inside: by the rule, and not by what was meant.
func (p proving) layOut(env map[string]string, server *boundary.HostServer) error {
	files, err := readNames(filepath.Dir(p.laid()))
	if err != nil {
		return err
	}
	if name := filepath.Base(p.laid()); !slices.Contains(files, name) {
		files = append(files, name)
	}
	ruled := p.box
	ruled.Mounts = p.rule.mounts
	spec := boundary.Inside(ruled, env, files, p.rule.absent)
	if !cutOff(p.box) {
		spec.Net = boundary.Net(server, p.Net.Weak != "")
		if spec.Net.Own = p.ranges; len(p.ranges) == 0 {
			spec.Net.Own = []string{"127.0.0.0/8"}
		}
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
	return hostfs.Put(p.laid(), data, 0o644)
}

// laid is what the first program in the box reads.
func (p proving) laid() string { return filepath.Join(p.dir, "in", filepath.Base(helper.Probe)) }

// after reads what the started box's first program found. Only the first line
// counts: whoever runs in the box later can write others. A box that is gone, or
// that was killed before it said a word and did nothing, is no matter of the
// boundary: how it ended is told by others. heard says whether this abl listened
// while the box looked for it.
func (p proving) after(ctx context.Context, heard bool) error {
	b, _, err := Record{p.dir}.Boundary()
	if err == nil && len(b.Inside) > 0 && b.Failed == "" {
		return nil // an earlier abl read it
	}
	if damaged, is := errors.AsType[*Damaged](err); is { // as what was noted before the start may be
		_, err = damaged.SetAside()
		b = Boundary{Box: p.box.Name, At: time.Now().UTC(), Weak: p.Net.Weak}
	}
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	line, err := p.hear(ctx)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: nothing was heard from inside within %s", sandbox.ErrUnproven, probeTime)
	case err != nil:
		return err
	case (len(line) == 0 || bytes.HasPrefix(line, []byte(runEndPrefix))) && p.killed(ctx):
		return nil
	default:
		err = p.judge(&b, line)
	}
	b.Unheard = !heard && !p.Net.Away
	if err != nil {
		b.Failed = err.Error()
	}
	return errors.Join(err, p.keep(b))
}

// hear is the first line. The time for it is the box's own: when it is over and the
// engine was the one that did not answer, it begins anew.
func (p proving) hear(ctx context.Context) (line []byte, err error) {
	for range 2 {
		bound, cancel := context.WithTimeout(ctx, probeTime)
		line, err = p.Engine.Head(bound, p.box.Name, maxProof)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return line, err
		}
		if _, err := p.Engine.Status(ctx, p.box.Name); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// judge takes a first line for a proof.
func (p proving) judge(b *Boundary, line []byte) error {
	var found helper.Probed
	if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &found) != nil || found.Proof == nil && found.Error == "" {
		return fmt.Errorf("%w: no probe ran inside; first came %q", sandbox.ErrUnproven, line[:min(len(line), 200)])
	}
	b.Inside, b.ProbeMS = found.Proof, found.MS
	if found.Error != "" {
		return fmt.Errorf("%w: %s", sandbox.ErrUnproven, found.Error)
	}
	if err := found.Proof.Err(); err != nil {
		return err
	}
	if p.server != nil { // what was refused inside must not have arrived here
		here := p.server.Arrived()
		here.Weak = p.Net.Weak != "" && !here.OK
		b.Inside = append(b.Inside, here)
		if err := b.Inside.Err(); err != nil {
			return err
		}
	}
	spec, err := p.asked()
	if err != nil {
		return err
	}
	if left := boundary.Missing(spec, found.Proof); len(left) > 0 {
		return fmt.Errorf("%w: the probe inside left out %d checks: %s", sandbox.ErrUnproven, len(left), strings.Join(left[:min(len(left), 3)], ", "))
	}
	return nil
}

// asked is what the box was asked, which is taken out of its sight: it names
// this machine's addresses, and they are nothing to an agent.
func (p proving) asked() (spec helper.ProbeSpec, err error) {
	kept := filepath.Join(p.dir, filepath.Base(helper.Probe))
	if err := os.Rename(p.laid(), kept); err != nil && !errors.Is(err, fs.ErrNotExist) { // gone: by an abl that was killed then
		return spec, fmt.Errorf("cannot keep the record of a call: %w", err)
	}
	ok, err := readJSON(kept, &spec)
	if err == nil && !ok {
		err = fmt.Errorf("%w: nobody knows what the probe inside was asked", sandbox.ErrUnproven)
	}
	return spec, err
}

// killed says that the box was ended from outside, by a signal or for its memory. A Go program
// that is process 1 ends with 2 at a SIGTERM for which it has no handler yet.
func (p proving) killed(ctx context.Context) bool {
	const early, signalled = 2, 128
	bound, cancel := context.WithTimeout(ctx, probeTime) // its last word may come before its end
	defer cancel()
	exit, err := p.Engine.Wait(bound, p.box.Name)
	return err == nil && (exit.OOMKilled || exit.Code == early || exit.Code > signalled)
}
