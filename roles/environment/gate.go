package environment

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"abl/internal/gateway"
	"abl/internal/gateway/sidecar"
	"abl/internal/helper"
	"abl/internal/prices"
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

	heard   *atomic.Bool // a provider has answered a call of this run; nil where that is all one
	used    atomic.Pointer[gateway.Sum]
	unwatch func()       // ends the watch of the call that is on
	Key     *keyCommand  // nil for a key that does not expire
	unrenew func() error // ends the renewal of its key, and returns the last failure
}

// Open makes the gateway of a call. What the role's box gets of it is an address
// and a token that is worth something to this gateway, for this call, only.
func (g *Gate) Open(ctx context.Context, key, model string, deadline time.Time) (env []string, err error) {
	setup := g.Setup
	setup.Providers = slices.Clone(setup.Providers)
	vars := g.Agent.Provider
	for i := range setup.Providers { // a chain's others are for other calls
		setup.Providers[i].Models = []string{model}
		if vars.Prefix != "" && !strings.HasPrefix(model, vars.Prefix) {
			setup.Providers[i].Models = []string{vars.Prefix + model, model} // the CLI adds the prefix to what it knows
		}
	}
	setup.First = g.heard != nil && !g.heard.Load()
	if g.Key != nil {
		fresh, err := g.Key.run(ctx)
		if err != nil {
			return nil, err
		}
		setup.Providers[0].Key = fresh
	}
	token := rand.Text()
	budget, err := g.Budget(key)
	if err != nil {
		return nil, err
	}
	setup.Call = gateway.Call{ID: key, Token: gateway.Secret(token), Deadline: deadline.Unix(), Budget: budget}
	if err := g.EnsureEgress(ctx); err != nil {
		return nil, err
	}
	box := g.sidecar(key, deadline)
	if err := box.Open(ctx, setup); err != nil {
		return nil, err
	}
	g.watch(ctx, box)
	g.renew(ctx, box)
	at := fmt.Sprintf("%s:%d", helper.GatewayAlias, helper.GatewayPort)
	if vars.API != "" {
		env = append(env, vars.Variables(fmt.Sprintf("http://%s/%s/%s", at, key, vars.API), token)...)
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
	if g.Key != nil {
		fresh, err := g.Key.run(ctx)
		if err != nil {
			return err
		}
		if err := box.Renew(ctx, fresh); err != nil {
			return fmt.Errorf("cannot give the gateway of call %s its key: %w", key, err)
		}
	}
	g.watch(ctx, box)
	g.renew(ctx, box)
	return nil
}

// renew renews the key of a call until Close.
func (g *Gate) renew(ctx context.Context, box sidecar.Sidecar) {
	if g.Key == nil || g.unrenew != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- g.Key.renew(ctx, box) }()
	g.unrenew = func() error { cancel(); return <-done }
}

// watch shows a gateway's log until Close.
func (g *Gate) watch(ctx context.Context, box sidecar.Sidecar) {
	if g.unwatch != nil {
		return
	}
	g.used.Store(nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); box.Watch(ctx, g.sees) }()
	g.unwatch = func() { cancel(); <-done }
}

// sees takes what a call has used by the newest line of its gateway's log.
func (g *Gate) sees(sum gateway.Sum) {
	g.used.Store(&sum)
	if g.Spent != nil {
		g.Spent(sum)
	}
}

// Used implements roles.Gate.
func (g *Gate) Used() *roles.Used {
	return usedBy(g.used.Load())
}

// Used returns what a call of a project has used so far, as the abl that runs it last saw it, nil if
// that is not known.
func Used(p state.Project, call string) *roles.Used { return usedBy(sidecar.Seen(gateLog(p, call))) }

// gateLog is the file that takes the log of a call's gateway.
func gateLog(p state.Project, call string) string {
	return filepath.Join(p.Call(call), "gateway.jsonl")
}

func usedBy(sum *gateway.Sum) *roles.Used {
	if sum == nil {
		return nil
	}
	known, complete := sum.Usage.All()
	part, _ := sum.Part.All()
	return &roles.Used{
		Tokens:  tokens.Plus(known, part),
		USD:     sum.Cost,
		AtLeast: sum.Unknown > 0 || sum.Requests > 0 && !complete,
	}
}

// Close ends the gateway of a call and counts what passed it.
func (g *Gate) Close(ctx context.Context, key string) (roles.Traffic, error) {
	if g.unwatch != nil {
		g.unwatch()
		g.unwatch = nil
	}
	var notRenewed error
	if g.unrenew != nil {
		notRenewed = g.unrenew()
		g.unrenew = nil
	}
	log, err := g.sidecar(key, time.Time{}).Close(ctx)
	if err != nil && !errors.Is(err, sidecar.ErrGone) {
		return roles.Traffic{}, err
	}
	t := trafficOf(log, key)
	if notRenewed != nil {
		t.Notes = append(t.Notes, "the key was not renewed: "+notRenewed.Error())
	}
	sum := log.Sum()
	if sum != nil {
		g.sees(*sum)
	}
	if sum != nil && sum.Requests > 0 && g.heard != nil {
		g.heard.Store(true)
	}
	if err == nil && log.Sum() != nil {
		return t, nil
	}
	unknown := "the gateway's log has no line with what this call used"
	if err != nil {
		unknown = "it is unknown what this call used: " + err.Error()
	}
	t.Notes = append(t.Notes, unknown+"; a budget counts it as all that was left")
	budget, err := g.Budget(key)
	t.Charged = atMost(t.Charged, budget)
	return t, err
}

// atMost counts a call whose use is unknown at all that the tightest of its bounds leaves.
func atMost(known *roles.Charged, b gateway.Budget) *roles.Charged {
	const unbounded = math.MaxInt64
	left, usd := int64(unbounded), prices.USD(unbounded)
	for _, bound := range b.Bounds {
		if bound.Tokens != nil {
			left = min(left, max(*bound.Tokens-bound.UsedTokens, 0))
		}
		if bound.USD != nil {
			usd = min(usd, max(*bound.USD-bound.UsedUSD, 0))
		}
	}
	if left == unbounded && usd == unbounded {
		return known
	}
	all := cmp.Or(known, &roles.Charged{})
	if left < unbounded {
		all.Tokens = max(all.Tokens, left)
	}
	if usd < unbounded {
		all.USD = new(max(*cmp.Or(all.USD, new(prices.USD)), usd))
	}
	return all
}

func (g *Gate) sidecar(key string, deadline time.Time) sidecar.Sidecar {
	return sidecar.Sidecar{
		Engine: g.Engine, Name: roles.GateName(g.ID, key), Image: g.Sidecar,
		Inside: g.Network(g.Place), Way: g.EgressEndpoint(), Keep: gateLog(g.Project, key), Safe: g.Safe,
		Labels: g.Labels("gateway", g.Place, key, deadline),
	}
}

// trafficOf returns what a gateway's log says of a call. Requests whose use is unknown are a
// row of their own, so that every sum shows that it is a lower bound.
func trafficOf(log sidecar.Log, call string) roles.Traffic {
	used := log.Sum()
	if used == nil {
		return roles.Traffic{Usage: []agent.Usage{{Part: true}}, Requests: -1}
	}
	t := roles.Traffic{Requests: used.Requests, Over: used.Over}
	charged, usd := used.Most()
	t.Charged = &roles.Charged{Tokens: charged, USD: usd}
	if used.Unknown < used.Requests {
		t.Usage = append(t.Usage, agent.Usage{Model: used.Model, Count: used.Usage, Cost: used.Cost})
	}
	if used.Unknown > 0 || used.UnderWay > 0 || !log.Ended {
		t.Usage = append(t.Usage, agent.Usage{Model: used.Model, Count: used.Part, Part: true})
	}
	if used.Unknown > 0 {
		note := "the cost of %d of %d requests to %s is unknown: the provider did not report all of their usage"
		t.Notes = append(t.Notes, fmt.Sprintf(note, used.Unknown, used.Requests, used.Model))
	}
	if !log.Ended {
		note := "the gateway's log has no end: the cost of %d requests and of all after its newest line is unknown"
		t.Notes = append(t.Notes, fmt.Sprintf(note, used.UnderWay))
	}
	if len(t.Usage) == 0 {
		t.Usage = []agent.Usage{{Count: tokens.None()}} // known: nothing passed
	}
	t.Notes = append(t.Notes, sidecar.Advice(log.Entries)...)
	last := gateway.LastTrouble(log.Entries, call)
	t.Fault, t.Waiting, t.Finish = last.Fault, last.Waiting, last.Finish
	t.Unfinished, t.Left = last.Unfinished, last.Left
	return t
}
