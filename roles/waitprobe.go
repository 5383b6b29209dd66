package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles/boundary"
)

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
	if err != nil { // what was noted before the start did not reach the disk
		b = Boundary{Box: p.box.Name, At: time.Now().UTC(), Weak: p.Net.Weak}
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
	case len(line) == 0 && p.killed(ctx):
		return nil
	default:
		err = p.judge(&b, line)
	}
	b.Unheard = !heard && !p.Net.Away
	if err != nil {
		b.Failed = err.Error()
	}
	return errors.Join(err, p.save(b))
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

// killed says that the box was ended from outside, by a signal or for its memory.
func (p proving) killed(ctx context.Context) bool {
	const signalled = 128
	st, err := p.Engine.Status(ctx, p.box.Name)
	return err == nil && st.State == sandbox.Exited && (st.OOMKilled || st.ExitCode > signalled)
}
