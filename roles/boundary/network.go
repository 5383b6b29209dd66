package boundary

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// Engine is what the probe of an engine's networks needs of it.
type Engine interface {
	sandbox.Engine
	Addresses(ctx context.Context, name string) ([]string, error)
	HostAddress(ctx context.Context, network string) (netip.Addr, error)
}

// Prober proves on a real engine, with throw-away boxes, that abl's kind of
// network keeps its boxes from this machine and from everybody else's.
type Prober struct {
	Engine  Engine
	Image   string // of abl's holder
	Pool    string // CIDR out of which networks are taken
	ID      string // labels and names all that is made; one prober at a time may have it
	Away    bool   // the engine is on another machine, where abl cannot listen
	Virtual bool   // the engine is not on this machine itself, whose addresses are none of its
}

const (
	probeTime = time.Minute      // for all of it
	boxLife   = 90 * time.Second // after which a box that nobody ended ends itself
	peerPort  = "9000"
	userID    = "10009:10009"
	maxLine   = 256 << 10
	engineMS  = 100 // the least time that silence is listened to: here there is enough
)

// prober is one run of it.
type prober struct {
	Prober
	apart  sandbox.Apart
	server *HostServer
	words  map[string]string // of the boxes that say one
}

// Try makes networks that are kept apart in this way and returns what was found.
// The error is that it could not be tried. Nothing of it stays on the engine.
func (p Prober) Try(ctx context.Context, apart sandbox.Apart) (proof sandbox.Proof, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if err := p.sweep(ctx); err != nil { // what an abl left that was killed
		return nil, err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
		defer cancel()
		err = errors.Join(err, p.sweep(tidy))
	}()
	run := &prober{Prober: p, apart: apart, words: map[string]string{}}
	if !p.Away {
		if run.server, err = ListenOnHost(ctx); err != nil {
			return nil, err
		}
		defer run.server.Close()
	}
	if err := run.populate(ctx); err != nil {
		return nil, err
	}
	return run.look(ctx)
}

func (p Prober) sweep(ctx context.Context) error {
	_, err := p.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: p.ID}, nil)
	return err
}

// look lets a box on each kind of network look around, as a role's box would.
func (r *prober) look(ctx context.Context) (sandbox.Proof, error) {
	strangers, err := r.strangers(ctx)
	if err != nil {
		return nil, err
	}
	within := Net(r.server, false)
	within.WaitMS, within.TCP = engineMS, append(within.TCP, strangers...)
	within.Peers = append(within.Peers, helper.ProbePeer{At: net.JoinHostPort("peer", peerPort), Say: r.words["peer"]})
	if r.Virtual { // nobody listens there: what counts is that the kernel refuses to send
		engine, err := r.Engine.HostAddress(ctx, r.name("outer"))
		if err != nil {
			return nil, err
		}
		within.UDP = append(within.UDP, net.JoinHostPort(engine.String(), discard))
	}
	isolated, err := r.probe(ctx, "look-inner", "holder-inner", within)
	if err != nil {
		return nil, err
	}
	if r.server == nil {
		return append(sandbox.Proof{unproven}, isolated...), nil
	}
	outside := &helper.ProbeNet{Word: r.server.Word, TCP: r.server.At(r.server.Port), Peers: []helper.ProbePeer{{At: holderDNS}}, WaitMS: engineMS}
	control, err := r.probe(ctx, "look-outer", "holder-outer", outside)
	return append(isolated, r.server.Arrived(), controlled(control, r.Virtual)), err
}

// unproven is said of an engine on another machine.
var unproven = sandbox.Check{Name: "control", Want: "an ordinary network reaches the host", Got: "unchecked: the engine is on another machine, where abl cannot listen"}

// controlled says what the same question from an ordinary network came to. If
// that hears nothing either, a firewall of the host's may be why: then silence
// and the peer that answered are what the proof rests on. From a virtual machine
// it has to be heard, or nobody knows that this is the machine it runs on.
func controlled(control sandbox.Proof, virtual bool) sandbox.Check {
	c := sandbox.Check{Name: "control", Want: "an ordinary network reaches the host", OK: true}
	c.Got = "it does"
	by, told := control.Get("the host by tcp")
	silent := by.OK || !told
	switch {
	case silent && virtual:
		c.Got, c.OK = "it does not: a firewall, or the engine is elsewhere", false
	case silent:
		c.Got = "it does not either (a firewall?): the proof rests on the silence and on the peer that answers"
	}
	return c
}

// probe runs abl-probe in a box that joins a holder, and returns what it found.
func (r *prober) probe(ctx context.Context, name, holder string, n *helper.ProbeNet) (sandbox.Proof, error) {
	spec, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	box := r.box(name, sandbox.Reach{Join: r.name(holder)}, helper.HelperProbe, "look", string(spec))
	line, err := r.run(ctx, box)
	if err != nil {
		return nil, err
	}
	var found helper.Probed
	if err := json.Unmarshal(line, &found); err != nil || len(found.Proof) == 0 {
		return nil, fmt.Errorf("the probe of the network said %q", line)
	}
	return found.Proof, nil
}

// populate makes the networks and those who live on them: on the isolated one a
// holder and a peer, on an ordinary one a holder and a stranger, and on another isolated
// one another stranger.
func (r *prober) populate(ctx context.Context) error {
	at := func(place string, aliases ...string) sandbox.Reach {
		return sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: r.name(place), Aliases: aliases}}}
	}
	return errors.Join(
		r.settle(ctx, "inner", false, r.holder("holder-inner", at("inner")), r.speaker("peer", at("inner", "peer"))),
		r.settle(ctx, "outer", true, r.box("holder-outer", at("outer"), helper.HelperHolder), r.speaker("outsider", at("outer"))),
		r.settle(ctx, "other", false, r.speaker("neighbour", at("other"))),
	)
}

// settle makes a network and starts its boxes, each of which says when it is ready.
func (r *prober) settle(ctx context.Context, place string, egress bool, boxes ...sandbox.Box) error {
	n := sandbox.Network{Name: r.name(place), Egress: egress, Pool: r.Pool, Apart: r.apart, Labels: r.labels("network")}
	if err := r.Engine.EnsureNetwork(ctx, n); err != nil {
		return err
	}
	for _, box := range boxes {
		if _, err := r.run(ctx, box); err != nil {
			return err
		}
	}
	return nil
}

// speaker is a box that says a word of its own to everybody who connects.
func (r *prober) speaker(name string, reach sandbox.Reach) sandbox.Box {
	word := rand.Text()
	r.words[name] = word
	return r.box(name, reach, helper.HelperProbe, "say", word, ":"+peerPort)
}

// strangers are the addresses of boxes that must be out of reach.
func (r *prober) strangers(ctx context.Context) (all []string, err error) {
	for _, name := range []string{"outsider", "neighbour"} {
		found, err := r.Engine.Addresses(ctx, r.name(name))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("box %q has no address", r.name(name))
		}
		for _, at := range found {
			all = append(all, net.JoinHostPort(at, peerPort))
		}
	}
	return all, nil
}

// run starts a box and returns the first line that it prints.
func (r *prober) run(ctx context.Context, box sandbox.Box) ([]byte, error) {
	if _, err := r.Engine.Create(ctx, box); err != nil {
		return nil, err
	}
	if err := r.Engine.Start(ctx, box.Name); err != nil {
		return nil, err
	}
	line, err := r.Engine.Head(ctx, box.Name, maxLine)
	if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
		err = fmt.Errorf("box %q ended before it was ready: %q", box.Name, line)
	}
	return line, err
}

func (r *prober) name(what string) string { return sandbox.Name(r.ID, what) }

// box is one of the helper's programs in a container like a holder's.
func (r *prober) box(name string, reach sandbox.Reach, program string, args ...string) sandbox.Box {
	labels := r.labels("helper")
	argv := []string{helper.Bin + "/" + program, "--deadline", labels[sandbox.LabelDeadline]}
	return sandbox.Box{
		Name: r.name(name), Image: r.Image, User: userID, Argv: append(argv, args...), Reach: reach, Labels: labels,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256},
	}
}

// holder is a box that closes its network as a role's does.
func (r *prober) holder(name string, reach sandbox.Reach) sandbox.Box {
	box := r.box(name, reach, helper.HelperHolder, "--seal", userID)
	box.Seals, box.Labels[sandbox.LabelKind] = true, "holder"
	return box
}

func (r *prober) labels(kind string) map[string]string {
	deadline := strconv.FormatInt(time.Now().Add(boxLife).Unix(), 10)
	return map[string]string{sandbox.LabelProject: r.ID, sandbox.LabelKind: kind, sandbox.LabelDeadline: deadline}
}
