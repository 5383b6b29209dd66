package roles

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"abl/internal/failpoint"
	"abl/orchestrator/dirs"
	"abl/orchestrator/sandbox"
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
	Egress string          // an existing network to use as the way out, "" for one of abl's own
	Direct map[string]bool // roles whose agent talks to its provider itself

	mu   sync.Mutex
	have map[string]string
}

// The places on a site.
const (
	PlaceBuilder  = "builder"
	PlaceVerifier = "verifier"
	PlaceApp      = "app"
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
	case PlaceApp:
		return sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: s.Network("app"), Aliases: []string{dirs.AppAlias}}}}
	}
	if s.Direct[place] {
		r.Resolve = true
		r.Endpoints = append(r.Endpoints, sandbox.Endpoint{Network: s.egress(), Foreign: s.Egress != ""})
	}
	return r
}

func (s *Site) egress() string {
	if s.Egress != "" {
		return s.Egress
	}
	return s.Network("egress")
}

// Holder returns the running holder of a place, made when there is none.
func (s *Site) Holder(ctx context.Context, place string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.have[place]; ok {
		return name, nil
	}
	name := BoxName(s.ID, "holder-"+place)
	if st, err := s.Engine.Status(ctx, name); err == nil && st.State == sandbox.Running {
		return s.keep(place, name), nil
	} else if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	// Seen through, lest the engine makes a box that no sweep has seen.
	if err := s.make(context.WithoutCancel(ctx), place, name); err != nil {
		return "", fmt.Errorf("cannot make the %s's network: %w", place, err)
	}
	return s.keep(place, name), nil
}

func (s *Site) keep(place, name string) string {
	if s.have == nil {
		s.have = map[string]string{}
	}
	s.have[place] = name
	return name
}

func (s *Site) make(ctx context.Context, place, name string) error {
	reach := s.Reach(place)
	for _, ep := range reach.Endpoints {
		if ep.Foreign {
			continue
		}
		n := sandbox.Network{Name: ep.Network, Egress: ep.Network == s.egress(), Pool: s.Pool, Labels: s.labels("network", place)}
		if err := s.Engine.EnsureNetwork(ctx, n); err != nil {
			return err
		}
	}
	if err := s.Engine.Remove(ctx, name); err != nil {
		return err
	}
	box := sandbox.Box{
		Name: name, Image: s.Image, User: holderUser, Argv: []string{dirs.Bin + "/" + dirs.HelperHolder},
		Reach: reach, Labels: s.labels("holder", place),
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256},
	}
	if _, err := s.Engine.Create(ctx, box); err != nil {
		return err
	}
	failpoint.Here("holder.created")
	if err := s.Engine.Start(ctx, name); err != nil {
		return err
	}
	failpoint.Here("holder.started")
	return nil
}

func (s *Site) labels(kind, place string) map[string]string {
	return map[string]string{
		sandbox.LabelProject: s.ID, sandbox.LabelKind: kind, sandbox.LabelPhase: strconv.Itoa(s.Phase), sandbox.LabelRole: place,
		sandbox.LabelDeadline: strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10),
	}
}
