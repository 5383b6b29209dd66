package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/cmd/internal/money"
	"abl/internal/cacerts"
	"abl/internal/sandbox"
	"abl/orchestrator"
	"abl/orchestrator/event"
	"abl/orchestrator/gateway"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/registry"
)

// giveGate puts a gateway between the role and what it may reach: its provider,
// whose key the gateway alone is told, and the Builder's registries. A role with
// neither has no way out at all.
func (st *stage) giveGate(ctx context.Context, role roles.Role, p *orchestrator.Player) error {
	vars, served := agent.ProviderOf(p.Agent)
	fetches := role.Name == roles.Builder.Name && len(st.conf.Network.Allow) > 0
	if !served && !fetches {
		return nil
	}
	g := &ground.Gate{
		Engine: st.engine, Project: st.project, Site: st.site, Place: role.Name, Role: role.Name, Image: st.have.gateway,
		Vars: vars, Budget: st.left, Nearly: st.warner.Warn, Outlet: st.in.Outlet,
	}
	if served {
		one, err := st.provider(ctx, vars, p.Models())
		if err != nil {
			return err
		}
		g.Setup.Providers = []gateway.Provider{one}
	}
	if fetches {
		if err := st.allow(ctx, g, p); err != nil {
			return err
		}
	}
	if err := g.Trust(st.trusted()); err != nil {
		return err
	}
	p.Gate = g
	st.site.Gated[role.Name] = true
	return nil
}

// provider is a role's model service as its gateway is told of it.
func (st *stage) provider(ctx context.Context, vars agent.Provider, models []string) (gateway.Provider, error) {
	key, _ := st.key(vars.KeyVar)
	if key == "" {
		return gateway.Provider{}, noKey(vars.KeyVar)
	}
	raw, _ := st.key(vars.BaseVar)
	list, err := st.pricing()
	if err != nil {
		return gateway.Provider{}, err
	}
	upstream, err := st.forwards.Upstream(ctx, vars, raw)
	return gateway.Provider{Name: vars.API, Upstream: upstream, Key: gateway.Secret(key), Models: models, Prices: money.Of(list, models)}, err
}

func noKey(name string) error {
	return fault(exit.Usage, fmt.Errorf("cannot find %s", name), fmt.Sprintf("add %s=… to .env, or choose another agent in .abl/config.yaml", name))
}

// allow lets a role's tools through to the registries of network.allow.
func (st *stage) allow(ctx context.Context, g *ground.Gate, p *orchestrator.Player) error {
	asker := registry.Asker{
		Engine: st.engine, Image: st.have.role[g.Role], User: fmt.Sprintf("%d:%d", st.uid, st.gid),
		Name: func(tool string) string { return roles.BoxName(st.file.Project, "ask-"+tool) },
		Labels: map[string]string{
			sandbox.LabelProject: st.file.Project, sandbox.LabelKind: "helper", sandbox.LabelPhase: strconv.Itoa(st.phase), sandbox.LabelRole: g.Role,
		},
	}
	egress, files, err := g.Fetch(ctx, asker, st.conf.Network.Allow, st.trusted())
	if err != nil {
		return err
	}
	for _, note := range egress.Notes {
		st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Phase: st.phase, Role: g.Role, Text: note})
	}
	p.Hosts, p.Files = egress.Hosts, files
	return nil
}

// trusted is whom this machine, and this person, trust.
func (st *stage) trusted() cacerts.Finder {
	return cacerts.Finder{Env: os.Getenv, Extra: cmp.Or(st.in.String("ca-cert"), st.path(st.conf.Network.CACert))}
}
