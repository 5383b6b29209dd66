package boundary

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// Prober proves on a real engine, with temporary containers, that abl's networks isolate containers
// from the engine's machine and from other containers.
type Prober struct {
	Engine sandbox.Engine
	Image  string // of abl's holder
	Pool   string // CIDR of abl's networks
	ID     string // for labels and names; unique among running probers
}

const (
	tryTime       = time.Minute      // for the whole of Try
	containerLife = 90 * time.Second // after which a container ends without abl
	peerPort      = "9000"
	userID        = "10009:10009"
	maxLine       = 256 << 10
	engineMS      = 100 // minimum time that a probe waits for a response
)

// prober is one run of a Prober.
type prober struct {
	Prober
	server *HostServer
	words  map[string]string // sent by the peers, by container name
}

// Try creates networks and returns what the probes found. It fails if it could not be tried. It
// removes everything from the engine.
func (p Prober) Try(ctx context.Context) (proof sandbox.Proof, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTime)
		defer cancel()
		err = errors.Join(err, p.sweep(tidy))
	}()
	run := &prober{Prober: p, words: map[string]string{}}
	container := HostContainer(run.container("listener", sandbox.Reach{}, helper.HelperProbe))
	line, err := run.run(ctx, container)
	if err != nil {
		return nil, err
	}
	if run.server, err = ReadHostServer(p.Engine, container.Name, line); err != nil {
		return nil, err
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

// look runs a probe in a container on each type of network.
func (r *prober) look(ctx context.Context) (sandbox.Proof, error) {
	strangers, err := r.strangers(ctx)
	if err != nil {
		return nil, err
	}
	within := Net(r.server, false)
	within.WaitMS, within.TCP = engineMS, append(within.TCP, strangers...)
	within.Peers = append(within.Peers, helper.ProbePeer{At: net.JoinHostPort("peer", peerPort), Say: r.words["peer"]})
	isolated, err := r.probe(ctx, "look-inner", "holder-inner", within)
	if err != nil {
		return nil, err
	}
	outside := &helper.ProbeNet{
		Word:   r.server.Word,
		TCP:    r.server.At(r.server.TCP),
		Peers:  []helper.ProbePeer{{At: holderDNS}},
		WaitMS: engineMS,
	}
	control, err := r.probe(ctx, "look-outer", "holder-outer", outside)
	return append(isolated, r.server.Arrived(ctx), controlled(control)), err
}

// controlled checks that an ordinary network reaches the host. If it does not, a firewall on the
// host may be the reason: then the proof is based on the silence and on the peer that responded.
func controlled(control sandbox.Proof) sandbox.Check {
	c := sandbox.Check{Name: "control", Want: "an ordinary network reaches the host", OK: true}
	c.Got = "it does"
	if by, reported := control.Get("the host by tcp"); by.OK || !reported {
		c.Got = "an ordinary network does not reach it either (a firewall?): " +
			"the proof is that the host is silent and the peer responds"
	}
	return c
}

// probe runs abl-probe in a container that joins a holder, and returns its findings.
func (r *prober) probe(ctx context.Context, name, holder string, n *helper.ProbeNet) (sandbox.Proof, error) {
	spec, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	container := r.container(name, sandbox.Reach{Join: r.name(holder)}, helper.HelperProbe, "look", string(spec))
	line, err := r.run(ctx, container)
	if err != nil {
		return nil, err
	}
	var found helper.Probed
	if err := json.Unmarshal(line, &found); err != nil || len(found.Proof) == 0 {
		return nil, fmt.Errorf("the probe of the network printed %q", line)
	}
	return found.Proof, nil
}

// populate creates the networks and their containers: a holder and a peer on an isolated one, a
// holder and a stranger on an ordinary one, and another stranger on another isolated one.
func (r *prober) populate(ctx context.Context) error {
	at := func(place string, aliases ...string) sandbox.Reach {
		return sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: r.name(place), Aliases: aliases}}}
	}
	return errors.Join(
		r.start(ctx, "inner", false, r.holder("holder-inner", at("inner")), r.speaker("peer", at("inner", "peer"))),
		r.start(ctx, "outer", true, r.container("holder-outer", at("outer"), helper.HelperHolder),
			r.speaker("outsider", at("outer"))),
		r.start(ctx, "other", false, r.speaker("neighbour", at("other"))),
	)
}

// start creates a network and starts its containers, and waits until they are ready.
func (r *prober) start(ctx context.Context, place string, egress bool, containers ...sandbox.ContainerConfig) error {
	n := sandbox.Network{Name: r.name(place), Egress: egress, Pool: r.Pool, Labels: r.labels("network")}
	if err := r.Engine.EnsureNetwork(ctx, n); err != nil {
		return err
	}
	for _, container := range containers {
		if _, err := r.run(ctx, container); err != nil {
			return err
		}
	}
	return nil
}

// speaker describes a container that sends a random word to each client.
func (r *prober) speaker(name string, reach sandbox.Reach) sandbox.ContainerConfig {
	word := rand.Text()
	r.words[name] = word
	return r.container(name, reach, helper.HelperProbe, "say", word, ":"+peerPort)
}

// strangers returns the addresses of containers that must be unreachable.
func (r *prober) strangers(ctx context.Context) (all []string, err error) {
	for _, name := range []string{"outsider", "neighbour"} {
		st, err := r.Engine.Status(ctx, r.name(name))
		if err != nil {
			return nil, err
		}
		if len(st.Addresses) == 0 {
			return nil, fmt.Errorf("container %q has no address", r.name(name))
		}
		for _, at := range st.Addresses {
			all = append(all, net.JoinHostPort(at, peerPort))
		}
	}
	return all, nil
}

// run starts a container and returns the first line of its output.
func (r *prober) run(ctx context.Context, container sandbox.ContainerConfig) ([]byte, error) {
	c := sandbox.Container{Engine: r.Engine, ContainerConfig: container}
	if err := c.Create(ctx); err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	return c.FirstLine(ctx)
}

func (r *prober) name(what string) string { return sandbox.Name(r.ID, what) }

// container describes a container for one of abl's own programs.
func (r *prober) container(name string, reach sandbox.Reach, program string, args ...string) sandbox.ContainerConfig {
	labels := r.labels("helper")
	argv := []string{helper.Bin + "/" + program, "--deadline", labels[sandbox.LabelDeadline]}
	return sandbox.ContainerConfig{
		Name:   r.name(name),
		Image:  r.Image,
		User:   userID,
		Argv:   append(argv, args...),
		Reach:  reach,
		Labels: labels,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256},
	}
}

// holder describes a holder that closes its network like a role's.
func (r *prober) holder(name string, reach sandbox.Reach) sandbox.ContainerConfig {
	container := r.container(name, reach, helper.HelperHolder, "--seal", userID)
	container.Seals, container.Labels[sandbox.LabelKind] = true, "holder"
	return container
}

func (r *prober) labels(kind string) map[string]string {
	deadline := strconv.FormatInt(time.Now().Add(containerLife).Unix(), 10)
	return map[string]string{sandbox.LabelProject: r.ID, sandbox.LabelKind: kind, sandbox.LabelDeadline: deadline}
}
