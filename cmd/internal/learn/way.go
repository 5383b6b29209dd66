package learn

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/cmd/internal/money"
	"abl/internal/cacerts"
	"abl/internal/sandbox"
	"abl/orchestrator/gateway"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/registry"
)

// way is what the calls of a session may reach: the model, and while a program is
// written, what network.allow lists.
type way struct {
	image string       // of the gateway, "" where nothing may be reached
	gate  *ground.Gate // of a call that writes a program
	hosts []string     // of network.allow
	files map[string][]byte
}

// open finds the provider and its key, which the gateway alone is told, and what
// network.allow lists.
func (b *bench) open(ctx context.Context) (err error) {
	trust := cacerts.Finder{Env: os.Getenv, Extra: cmp.Or(b.in.String("ca-cert"), ground.Path(b.root, b.conf.Network.CACert))}
	b.forwards = &ground.Forwards{Engine: b.engine, Info: b.info, Site: b.site, Note: b.project.Forwards(), Trusted: trust}
	if b.way.image == "" {
		return nil
	}
	vars, served := agent.ProviderOf(b.agent)
	g := &ground.Gate{
		Engine: b.engine, Project: b.project, Site: b.site, Place: roles.PlaceBuilder, Role: roles.PlaceBuilder, Image: b.way.image,
		Vars: vars, Budget: b.left, Nearly: b.warner.Warn, Outlet: b.in.Outlet,
	}
	if served {
		one, err := b.provider(ctx, vars)
		if err != nil {
			return err
		}
		g.Setup.Providers = []gateway.Provider{one}
	}
	if allow := b.conf.Network.Allow; len(allow) > 0 {
		egress, files, err := g.Fetch(ctx, b.asker(), allow, trust)
		if err != nil {
			return err
		}
		for _, note := range egress.Notes {
			b.tell.Note(note)
		}
		b.way.hosts, b.way.files = egress.Hosts, files
	}
	b.way.gate = g
	return g.Trust(trust)
}

func (b *bench) provider(ctx context.Context, vars agent.Provider) (gateway.Provider, error) {
	key := b.secret(vars.KeyVar)
	if key == "" {
		return gateway.Provider{}, noKey(vars.KeyVar)
	}
	upstream, err := b.forwards.Upstream(ctx, vars, b.secret(vars.BaseVar))
	return gateway.Provider{Name: vars.API, Upstream: upstream, Key: gateway.Secret(key)}, err
}

// asker asks the image for the addresses of its tools' registries.
func (b *bench) asker() registry.Asker {
	return registry.Asker{
		Engine: b.engine, Image: b.image, User: fmt.Sprintf("%d:%d", b.uid, b.gid),
		Name:   func(tool string) string { return roles.BoxName(b.id, "ask-"+tool) },
		Labels: map[string]string{sandbox.LabelProject: b.id, sandbox.LabelKind: "helper", sandbox.LabelPhase: fmt.Sprint(b.session)},
	}
}

// gate stands between a call and the one model that it may ask, at its price; a
// call that writes a program may fetch packages, too. nil is no way out at all.
func (b *bench) gate(step learner.Step, model string) (roles.Gate, map[string][]byte, error) {
	fetches := step == learner.Generate && len(b.way.hosts) > 0
	if b.way.gate == nil || len(b.way.gate.Setup.Providers) == 0 && !fetches {
		return nil, nil, nil
	}
	g := *b.way.gate
	if g.Setup.Providers = slices.Clone(g.Setup.Providers); len(g.Setup.Providers) > 0 {
		one := &g.Setup.Providers[0]
		one.Models = []string{model}
		if one.Prices = money.Of(b.ledger.List, one.Models); len(one.Prices) == 0 && b.conf.NeedsPrices() {
			return nil, nil, money.Unpriced("the model "+model+" has no price", model)
		}
	}
	if fetches {
		return &g, b.way.files, nil
	}
	g.Setup.Connect, g.Setup.Inside, g.Certs = nil, nil, nil
	return &g, nil, nil
}

func noKey(name string) error {
	return exit.With(exit.Usage, fmt.Errorf("cannot find %s", name), fmt.Sprintf("add %s=… to .env or the environment, or choose another agent with --agent", name))
}
