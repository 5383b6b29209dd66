package boundary

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// populate makes the networks and those who live on them: on the isolated one a
// holder and a peer, on an ordinary one a holder and a stranger, and on an
// isolated one of another project another stranger.
func (r *prober) populate(ctx context.Context) error {
	at := func(place string, aliases ...string) sandbox.Reach {
		return sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: r.name(place), Aliases: aliases}}}
	}
	inner := []sandbox.Box{r.holder("holder-inner", at("inner")), r.speaker("peer", r.ID, at("inner", "peer"))}
	outer := []sandbox.Box{r.box("holder-outer", r.ID, at("outer"), helper.HelperHolder), r.speaker("outsider", r.ID, at("outer"))}
	other := r.speaker("neighbour", r.other(), at("other"))
	return sideBySide(
		func() error { return r.settle(ctx, "inner", r.ID, false, inner...) },
		func() error { return r.settle(ctx, "outer", r.ID, true, outer...) },
		func() error { return r.settle(ctx, "other", r.other(), false, other) },
	)
}

// settle makes a network and starts its boxes, each of which says when it is ready.
func (r *prober) settle(ctx context.Context, place, project string, egress bool, boxes ...sandbox.Box) error {
	n := sandbox.Network{Name: r.name(place), Egress: egress, Pool: r.Pool, Apart: r.apart, Labels: labels(project, "network")}
	if err := r.Engine.EnsureNetwork(ctx, n); err != nil {
		return err
	}
	var starts []func() error
	for _, box := range boxes {
		starts = append(starts, func() error {
			line, err := r.run(ctx, box)
			if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
				err = fmt.Errorf("box %q ended before it was ready: %q", box.Name, line)
			}
			return err
		})
	}
	return sideBySide(starts...)
}

// speaker is a box that says a word of its own to everybody who connects.
func (r *prober) speaker(name, project string, reach sandbox.Reach) sandbox.Box {
	word := rand.Text()
	r.words[name] = word
	return r.box(name, project, reach, helper.HelperProbe, "say", word, ":"+peerPort)
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
	return r.Engine.Head(ctx, box.Name, maxLine)
}

func (r *prober) name(what string) string { return "abl-" + r.ID + "-" + what }

// box is one of the helper's programs in a container like a holder's.
func (r *prober) box(name, project string, reach sandbox.Reach, program string, args ...string) sandbox.Box {
	argv := []string{helper.Bin + "/" + program, "--deadline", strconv.FormatInt(time.Now().Add(boxLife).Unix(), 10)}
	return sandbox.Box{
		Name: r.name(name), Image: r.Image, User: userID, Argv: append(argv, args...), Reach: reach, Labels: labels(project, "helper"),
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256},
	}
}

// holder is a box that closes its network as a role's does.
func (r *prober) holder(name string, reach sandbox.Reach) sandbox.Box {
	box := r.box(name, r.ID, reach, helper.HelperHolder, "--seal", userID)
	box.Seals, box.Labels[sandbox.LabelKind] = true, "holder"
	return box
}

func labels(project, kind string) map[string]string {
	return map[string]string{
		sandbox.LabelProject: project, sandbox.LabelKind: kind,
		sandbox.LabelDeadline: strconv.FormatInt(time.Now().Add(boxLife).Unix(), 10),
	}
}

// sideBySide does all at once and returns every error.
func sideBySide(acts ...func() error) error {
	errs := make([]error, len(acts))
	var all sync.WaitGroup
	for i, act := range acts {
		all.Go(func() { errs[i] = act() })
	}
	all.Wait()
	return errors.Join(errs...)
}
