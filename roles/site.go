package roles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
)

// SiteEngine is what a site needs of an engine.
type SiteEngine interface {
	Engine
	EnsureNetwork(context.Context, sandbox.Network) error
}

// Site holds the networks of a running phase. Each role, and the app, has a
// holder: a tiny box whose network namespace its calls join, with the reach of
// the role and no more. A kept namespace makes a call start in less than half
// the time of one with endpoints of its own (docs/architecture.md).
type Site struct {
	Engine SiteEngine
	ID     string
	Phase  int
	Image  string          // of the holder
	Pool   string          // CIDR out of which networks are taken
	Egress string          // an existing network to use as the gateways' way out, "" for one of abl's own
	Gated  map[string]bool // roles whose calls have a gateway beside them
	Net    Net
	Life   time.Duration // after which a holder that nobody took down ends itself, 0 is a day

	mu sync.Mutex
}

// The places on a site.
const (
	PlaceBuilder  = "builder"
	PlaceVerifier = "verifier"
	PlaceApp      = "app"

	placeService = "svc-" // and its name
)

// holderUser differs from every role's, so that no role can signal its holder.
const holderUser = "10009:10009"

// Network is the name of one of the site's networks.
func (s *Site) Network(what string) string { return BoxName(s.ID, "net-"+what) }

// Reach is the pure part: which networks a place is on, and under which names.
func (s *Site) Reach(place string) sandbox.Reach {
	var r sandbox.Reach
	switch place {
	case PlaceBuilder:
		r.Endpoints = []sandbox.Endpoint{{Network: s.Network("builder")}}
	case PlaceVerifier:
		r.Endpoints = []sandbox.Endpoint{{Network: s.Network("app")}}
		if s.Gated[place] {
			r.Endpoints = append(r.Endpoints, sandbox.Endpoint{Network: s.Network("verifier")})
		}
	case PlaceApp:
		r.Endpoints = []sandbox.Endpoint{{Network: s.Network("app"), Aliases: []string{helper.AppAlias}}}
	default:
		if name, ok := strings.CutPrefix(place, placeService); ok {
			r.Endpoints = []sandbox.Endpoint{{Network: s.Network("app"), Aliases: []string{name}}}
		}
	}
	return r
}

// Way is what only gateways are on: the way out.
func (s *Site) Way() sandbox.Endpoint {
	return sandbox.Endpoint{Network: s.egress(), Foreign: s.Egress != ""}
}

// OpenWay makes the network of the way out, unless it is the person's own.
func (s *Site) OpenWay(ctx context.Context) error {
	if s.Egress != "" {
		return nil
	}
	return s.Engine.EnsureNetwork(ctx, sandbox.Network{Name: s.egress(), Egress: true, Pool: s.Pool, Labels: s.labels("network", "egress")})
}

func (s *Site) egress() string {
	if s.Egress != "" {
		return s.Egress
	}
	return s.Network("egress")
}

// Holder returns the running holder of a place, made when there is none: one ends
// at its deadline, and with an engine that is stopped.
func (s *Site) Holder(ctx context.Context, place string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := BoxName(s.ID, "holder-"+place)
	if st, err := s.Engine.Status(ctx, name); err == nil && st.State == sandbox.Running {
		return name, nil
	} else if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return name, s.make(ctx, place, name, s.labels("holder", place))
}

// HolderUntil makes the holder of a place anew, with an end of its own: what runs
// under it ends then, too.
func (s *Site) HolderUntil(ctx context.Context, place string, deadline int64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, labels := BoxName(s.ID, "holder-"+place), s.labels("holder", place)
	labels[sandbox.LabelDeadline] = strconv.FormatInt(deadline, 10)
	return name, s.make(ctx, place, name, labels)
}

// make sees it through, lest the engine makes a box that no sweep has seen.
func (s *Site) make(ctx context.Context, place, name string, labels map[string]string) error {
	if err := s.makeBox(context.WithoutCancel(ctx), place, name, labels); err != nil {
		return fmt.Errorf("cannot make the %s's network: %w", place, err)
	}
	return nil
}

func (s *Site) makeBox(ctx context.Context, place, name string, labels map[string]string) error {
	reach := s.Reach(place)
	for _, ep := range reach.Endpoints {
		n := sandbox.Network{Name: ep.Network, Pool: s.Pool, Apart: s.Net.Apart, Labels: s.labels("network", place)}
		if err := s.Engine.EnsureNetwork(ctx, n); err != nil {
			return err
		}
	}
	if err := s.Engine.Remove(ctx, name); err != nil {
		return err
	}
	box := sandbox.Box{
		Name: name, Image: s.Image, User: holderUser, Seals: true,
		Argv:  []string{helper.Bin + "/" + helper.HelperHolder, "--deadline", labels[sandbox.LabelDeadline], "--seal", holderUser},
		Reach: reach, Labels: labels,
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256},
	}
	if err := made(ctx, s.Engine, box); err != nil {
		return err
	}
	failpoint.Here("holder.created")
	if err := s.Engine.Start(ctx, name); err != nil {
		return err
	}
	failpoint.Here("holder.started")
	return s.closed(ctx, name)
}

// closed waits until the holder has closed its network: before that nothing may
// run in it.
func (s *Site) closed(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	line, err := s.Engine.Head(ctx, name, maxProof)
	if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
		err = fmt.Errorf("its holder ended before it was ready: %q", line)
	}
	return err
}

func (s *Site) labels(kind, place string) map[string]string {
	return map[string]string{
		sandbox.LabelProject: s.ID, sandbox.LabelKind: kind, sandbox.LabelPhase: strconv.Itoa(s.Phase), sandbox.LabelRole: place,
		sandbox.LabelDeadline: strconv.FormatInt(time.Now().Add(cmp.Or(s.Life, 24*time.Hour)).Unix(), 10),
	}
}
