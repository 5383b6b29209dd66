package boundary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	var errs []error
	for _, id := range []string{p.ID, p.other()} {
		_, err := p.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: id}, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// other is the project of a stranger.
func (p Prober) other() string { return p.ID + "-other" }

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
	var isolated, control sandbox.Proof
	tries := []func() error{func() (err error) { isolated, err = r.probe(ctx, "look-inner", "holder-inner", within); return err }}
	if r.server != nil {
		outside := &helper.ProbeNet{Word: r.server.Word, TCP: r.server.At(r.server.Port), Peers: []helper.ProbePeer{{At: holderDNS}}, WaitMS: engineMS}
		tries = append(tries, func() (err error) { control, err = r.probe(ctx, "look-outer", "holder-outer", outside); return err })
	}
	if err := sideBySide(tries...); err != nil {
		return nil, err
	}
	if r.server == nil {
		return append(sandbox.Proof{unproven}, isolated...), nil
	}
	return append(isolated, r.server.Arrived(), controlled(control, r.Virtual)), nil
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
	box := r.box(name, r.ID, sandbox.Reach{Join: r.name(holder)}, helper.HelperProbe, "look", string(spec))
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
