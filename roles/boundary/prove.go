package boundary

import (
	"bytes"
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
	"abl/roles"
)

// Launcher creates, proves and starts one container.
type Launcher struct {
	*Containers
	Project state.Project
	Config  sandbox.ContainerConfig
	// The folder of the record. The container sees its subfolder in at helper.In.
	Dir  string
	Rule Rule
	// Detects connections to the engine's machine; nil if the container has no network.
	server *HostServer
	nets   []sandbox.Subnet // of the networks that the container may be on
	// Finds secrets that the container must not have; nil if the user's settings may contain some.
	Secrets *redact.Sanitizer
}

// probeTime is how long the probe in a container may take.
const probeTime = 30 * time.Second

// maxProof is the largest size of the probe's report, in bytes.
const maxProof = 256 << 10

// Launch creates the container, calls fill to copy files into it, proves it, calls ready, and
// starts it. It continues after the end of ctx until the engine has responded, so that the engine
// creates no container after the last sweep.
func (p *Launcher) Launch(ctx context.Context, fill, ready func() error) error {
	uncancelled := context.WithoutCancel(ctx)
	owner := p.Config.Labels[sandbox.LabelKind]
	isCall := owner == "role"
	if isCall {
		owner = p.Config.Labels[sandbox.LabelRole]
	}
	if err := roles.CheckSources(p.Project, p.Config.Mounts); err != nil {
		return err
	}
	c := p.Container(p.Config)
	if err := c.Create(uncancelled); err != nil {
		return fmt.Errorf("cannot create the %s's container: %w", owner, err)
	}
	if err := fill(); err != nil {
		return err
	}
	if err := p.before(uncancelled); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := ready(); err != nil {
		return err
	}
	if err := c.Start(uncancelled); err != nil {
		return fmt.Errorf("cannot start the %s: %w", owner, err)
	}
	if isCall {
		failpoint.Here("call.started")
	}
	return p.ReadProof(uncancelled, true)
}

// before compares the created container with what its rule allows, and writes the input of the probe.
func (p *Launcher) before(ctx context.Context) (err error) {
	b := roles.Boundary{Container: p.Config.Name, At: time.Now().UTC()}
	var st sandbox.Status
	var eerr, rerr, serr error
	var asked sync.WaitGroup // in parallel, because the call waits
	asked.Go(func() { st, eerr = p.Engine.Status(ctx, p.Config.Name) })
	asked.Go(func() { p.nets, rerr = p.Engine.Subnets(ctx, p.Rule.networkNames()) })
	if !hasNoNetwork(p.Config) {
		asked.Go(func() { p.server, serr = p.hostServer(ctx) })
	}
	b.Made, err = p.Engine.Prove(ctx, p.Rule.Expected(p.Config))
	asked.Wait()
	if p.Weak {
		serr = nil // the checks of the network fail without a listener
	}
	if err := errors.Join(err, eerr, rerr, serr); err != nil {
		return err
	}
	b.Made = append(b.Made, p.Rule.Check(p.Config)...)
	if p.Secrets != nil {
		b.Made = append(b.Made, p.secrets(st.Env))
	}
	if err := b.Made.Err(); err != nil {
		b.Failed = err.Error()
		return errors.Join(err, p.writeProof(b))
	}
	err = errors.Join(p.writeProbeSpec(st.Env), p.writeProof(b))
	failpoint.Here("probe.written")
	return err
}

// secrets checks that the container's environment contains no known secret.
func (p Launcher) secrets(env map[string]string) sandbox.Check {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if p.Secrets.Redact(env[name]) != env[name] {
			names = append(names, name)
		}
	}
	return sandbox.Same("secrets in its environment", "", strings.Join(names, " "))
}

// writeProbeSpec writes what the probe must find. It follows the rule and not the description of
// the container.
func (p Launcher) writeProbeSpec(env map[string]string) error {
	files, err := roles.Names(filepath.Dir(p.probeFile()))
	if err != nil {
		return err
	}
	if name := filepath.Base(p.probeFile()); !slices.Contains(files, name) {
		files = append(files, name)
	}
	spec := Inside(p.Rule.Expected(p.Config), env, files, p.Rule.absent)
	if !hasNoNetwork(p.Config) {
		spec.Net = Net(p.server, p.Weak)
		for _, n := range p.nets {
			spec.Net.Own = append(spec.Net.Own, n.Range)
		}
		if len(p.nets) == 0 {
			spec.Net.Own = []string{"127.0.0.0/8"}
		}
	}
	if p.Inodes {
		if err := Identify(&spec, p.Rule.mounts); err != nil {
			return err
		}
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return hostfs.Put(p.probeFile(), data, 0o644)
}

// probeFile returns the path of the probe's input.
func (p Launcher) probeFile() string { return filepath.Join(p.Dir, "in", filepath.Base(helper.Probe)) }

// ReadProof reads the report of the probe in the started container. Only the first line of the log
// counts: programs in the container can write others later. after returns nil for a container that
// is gone, or that was killed before it reported anything: this says nothing about the boundary.
// heard is true if this abl's listener ran while the probe ran.
func (p Launcher) ReadProof(ctx context.Context, heard bool) error {
	b, _, err := roles.Record{Dir: p.Dir}.Boundary()
	if err == nil && len(b.Inside) > 0 && b.Failed == "" {
		return nil // an earlier abl read the report
	}
	if damaged, is := errors.AsType[*roles.Damaged](err); is { // a power cut may damage the file
		_, err = damaged.SetAside()
		b = roles.Boundary{Container: p.Config.Name, At: time.Now().UTC()}
	}
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	line, err := p.firstReport(ctx)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: the probe in the container reported nothing within %s", sandbox.ErrUnproven, probeTime)
	case err != nil:
		return err
	case (len(line) == 0 || bytes.HasPrefix(line, []byte(runEndPrefix))) && p.killed(ctx):
		return nil
	default:
		err = p.judge(ctx, &b, line)
	}
	b.Unheard, b.Weak = !heard, b.Inside.Weak()
	if err != nil {
		b.Failed = err.Error()
	}
	return errors.Join(err, p.writeProof(b))
}

// firstReport returns the first line of the container's log. If the engine did not respond, the
// time for the probe starts again.
func (p Launcher) firstReport(ctx context.Context) (line []byte, err error) {
	for range 2 {
		bound, cancel := context.WithTimeout(ctx, probeTime)
		line, err = p.Engine.Head(bound, p.Config.Name, maxProof)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return line, err
		}
		if _, err := p.Engine.Status(ctx, p.Config.Name); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// judge checks the report of the probe.
func (p Launcher) judge(ctx context.Context, b *roles.Boundary, line []byte) error {
	var found helper.Probed
	if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &found) != nil || found.Proof == nil && found.Error == "" {
		return fmt.Errorf("%w: no probe ran inside; the first output was %q", sandbox.ErrUnproven, line[:min(len(line), 200)])
	}
	b.Inside, b.ProbeMS = found.Proof, found.MS
	if found.Error != "" {
		return fmt.Errorf("%w: %s", sandbox.ErrUnproven, found.Error)
	}
	if err := found.Proof.Err(); err != nil {
		return err
	}
	if p.server != nil { // datagrams that the probe reports as refused must not have arrived
		here := p.server.Arrived(ctx)
		if !here.OK && p.Gone(ctx, p.server.Name) {
			return fmt.Errorf("%w: %w: %s", sandbox.ErrUnproven, sandbox.ErrKilled, p.server.Name)
		}
		here.Weak = p.Weak && !here.OK
		b.Inside = append(b.Inside, here)
		if err := b.Inside.Err(); err != nil {
			return err
		}
	}
	spec, err := p.takeProbeSpec()
	if err != nil {
		return err
	}
	if left := Missing(spec, found.Proof); len(left) > 0 {
		return fmt.Errorf("%w: the probe inside left out %d checks: %s", sandbox.ErrUnproven, len(left),
			strings.Join(left[:min(len(left), 3)], ", "))
	}
	return nil
}

// takeProbeSpec moves the probe's input out of the container's sight and returns it. The file
// contains the addresses of the engine's machine, which an agent does not need.
func (p Launcher) takeProbeSpec() (spec helper.ProbeSpec, err error) {
	kept := filepath.Join(p.Dir, filepath.Base(helper.Probe))
	if err := os.Rename(p.probeFile(), kept); err != nil && !errors.Is(err, fs.ErrNotExist) { // moved by an abl that was killed
		return spec, fmt.Errorf("cannot change the record of a call: %w", err)
	}
	spec, ok, err := roles.Read[helper.ProbeSpec](roles.Record{Dir: p.Dir}, filepath.Base(kept))
	if err == nil && !ok {
		err = fmt.Errorf("%w: the input of the probe is missing", sandbox.ErrUnproven)
	}
	return spec, err
}

// killed reports whether the container was ended by a signal or for its memory. A Go program that
// is process 1 ends with exit code 2 if SIGTERM arrives before it has a handler.
func (p Launcher) killed(ctx context.Context) bool {
	const early, signalled = 2, 128
	bound, cancel := context.WithTimeout(ctx, probeTime) // the report may arrive before the end
	defer cancel()
	exit, err := p.Engine.Wait(bound, p.Config.Name)
	return err == nil && (exit.OOMKilled || exit.Code == early || exit.Code > signalled)
}

// writeProof writes the proof into the record.
func (p Launcher) writeProof(b roles.Boundary) error {
	if err := p.Secrets.Clean(&b); err != nil {
		return err
	}
	return roles.Record{Dir: p.Dir}.Write(roles.BoundaryFile, b)
}
