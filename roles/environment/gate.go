package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/gateway"
	"abl/internal/gateway/sidecar"
	"abl/internal/helper"
	"abl/internal/state"
	"abl/internal/tokens"
	"abl/roles"
	"abl/roles/agent"
)

// Gate opens the gateways of one role's calls.
type Gate struct {
	*roles.Boxes
	Access
	Project state.Project
	Sidecar string            // image of the gateway
	Setup   gateway.Setup     // of every call of the role, without the call itself
	Hosts   []string          // of network.allow that it lets through
	Certs   []string          // environment by which the role's tools trust the registries
	Files   map[string][]byte // that the role's boxes need for that

	unwatch func() // ends the watch of the call that is on
}

// Open makes the gateway of a call. What the role's box gets of it is an address
// and a token that is worth something to this gateway, for this call, only.
func (g *Gate) Open(ctx context.Context, key, model string, deadline time.Time) (env []string, err error) {
	setup := g.Setup
	setup.Providers = slices.Clone(setup.Providers)
	for i := range setup.Providers { // a chain's others are for other calls
		setup.Providers[i].Models = []string{model}
	}
	token := rand.Text()
	budget, err := g.Budget(key)
	if err != nil {
		return nil, err
	}
	setup.Call = gateway.Call{ID: key, Token: gateway.Secret(token), Deadline: deadline.Unix(), Budget: budget}
	if err := g.OpenWay(ctx); err != nil {
		return nil, err
	}
	box := g.sidecar(key, deadline)
	if err := box.Open(ctx, setup); err != nil {
		return nil, err
	}
	g.watch(ctx, box)
	at := fmt.Sprintf("%s:%d", helper.GatewayAlias, helper.GatewayPort)
	if vars := g.Agent.Provider; vars.API != "" {
		env = append(env, vars.KeyVar+"="+token, fmt.Sprintf("%s=http://%s/%s/%s", vars.BaseVar, at, key, vars.API))
	}
	if len(setup.Connect) > 0 {
		env = append(env, proxyEnv(fmt.Sprintf("http://abl:%s@%s", token, at), helper.GatewayAlias, helper.AppAlias)...)
		env = append(env, g.Certs...)
	}
	return env, nil
}

// Resume tells a gateway that is still open the bounds that hold now.
func (g *Gate) Resume(ctx context.Context, key string) error {
	budget, err := g.Budget(key)
	if err != nil {
		return err
	}
	box := g.sidecar(key, time.Time{})
	if err := box.Bound(ctx, budget); err != nil {
		return fmt.Errorf("cannot tell the gateway of call %s what it may spend: %w", key, err)
	}
	g.watch(ctx, box)
	return nil
}

// watch shows a gateway's log until Close.
func (g *Gate) watch(ctx context.Context, box sidecar.Sidecar) {
	if g.Spent == nil || g.unwatch != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); box.Watch(ctx, g.Spent) }()
	g.unwatch = func() { cancel(); <-done }
}

// Close ends the gateway of a call and counts what passed it.
func (g *Gate) Close(ctx context.Context, key string) (roles.Traffic, error) {
	if g.unwatch != nil {
		g.unwatch()
		g.unwatch = nil
	}
	log, err := g.sidecar(key, time.Time{}).Close(ctx)
	if errors.Is(err, sidecar.ErrGone) {
		lost := "nobody knows what this call used: its gateway was removed by somebody else"
		return roles.Traffic{Usage: []agent.Usage{{Part: true}}, Requests: -1, Notes: []string{lost}}, nil
	}
	if err != nil {
		return roles.Traffic{}, err
	}
	if g.Spent != nil {
		g.Spent(log.Entries)
	}
	return trafficOf(log, key), nil
}

func (g *Gate) sidecar(key string, deadline time.Time) sidecar.Sidecar {
	return sidecar.Sidecar{
		Engine: g.Engine, Name: roles.GateName(g.ID, key), Image: g.Sidecar,
		Inside: g.Network(g.Place), Way: g.Way(), Keep: filepath.Join(g.Project.Call(key), "gateway.jsonl"), Safe: g.Safe,
		Labels: g.Labels("gateway", g.Place, key, deadline),
	}
}

// trafficOf is what a gateway's log says of a call. What its provider did not tell
// whole, or what has no line, is a row of its own: it keeps every sum a lower bound
// that says so.
func trafficOf(log sidecar.Log, call string) roles.Traffic {
	used := gateway.Usage(log.Entries, call)
	t := roles.Traffic{Requests: used.Requests}
	if used.Untold < used.Requests {
		t.Usage = append(t.Usage, agent.Usage{Model: used.Model, Count: used.Count, Cost: used.Cost})
	}
	if used.Untold > 0 {
		t.Usage = append(t.Usage, agent.Usage{Model: used.Model, Count: used.Part, Part: true})
		t.Notes = append(t.Notes, fmt.Sprintf("the provider told no whole usage for %d of %d answers of %s", used.Untold, used.Requests, used.Model))
	}
	switch {
	case log.Lost > 0:
		t.Usage = append(t.Usage, agent.Usage{Part: true})
		t.Notes = append(t.Notes, fmt.Sprintf("the gateway's log lacks at least %d lines: the usage is a lower bound", log.Lost))
	case used.Requests == 0:
		t.Usage = []agent.Usage{{Count: tokens.None()}} // known: nothing passed
	}
	charged, usd := gateway.Charged(log.Entries, call)
	t.Charged = &roles.Charged{Tokens: charged, USD: usd}
	t.Notes = append(t.Notes, sidecar.Advice(log.Entries)...)
	for _, e := range log.Entries {
		if e.Req != nil && e.Req.Over {
			t.Over = e.Reason
		}
	}
	last := gateway.LastTrouble(log.Entries, call)
	t.Fault, t.Waiting, t.Finish = last.Fault, last.Waiting, last.Finish
	return t
}
