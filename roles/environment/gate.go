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
	"abl/internal/helper"
	"abl/internal/state"
	"abl/internal/usage"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
)

// Gate opens the gateways of one role's calls.
type Gate struct {
	*boundary.Containers
	Access
	Project state.Project
	Sidecar string            // image of the gateway
	Setup   gateway.Setup     // of every call of the role, without the call itself
	Hosts   []string          // of network.allow that it lets through
	Certs   []string          // variables by which the role's tools trust the registries
	Files   map[string][]byte // that the role's containers need for Certs

	heard   *atomic.Bool // a provider has responded to a call of this run; nil if that does not matter
	used    atomic.Pointer[roles.Used]
	unwatch func()       // ends the watch of the current call
	Key     *keyCommand  // nil for a key that does not expire
	unrenew func() error // ends the renewal of the key and returns the last failure
}

// Open starts the gateway of a call. The role's container gets only an address and a token, which
// is valid only for this gateway and this call.
func (g *Gate) Open(ctx context.Context, key, model string, deadline time.Time) (env []string, err error) {
	setup := g.Setup
	setup.Providers = slices.Clone(setup.Providers)
	vars := g.Agent.Provider
	for i := range setup.Providers { // a call may only use its own model
		setup.Providers[i].Models = []string{model}
		if vars.Prefix != "" && !strings.HasPrefix(model, vars.Prefix) {
			// the CLI adds the prefix to models that it recognizes
			setup.Providers[i].Models = []string{vars.Prefix + model, model}
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
	container := g.sidecar(key, deadline)
	if err := container.Open(ctx, setup); err != nil {
		return nil, err
	}
	g.watch(ctx, container)
	g.renew(ctx, container)
	at := fmt.Sprintf("%s:%d", helper.GatewayAlias, helper.GatewayPort)
	if vars.API != "" {
		env = append(env, vars.Variables(fmt.Sprintf("http://%s/%s/%s", at, key, vars.API), token)...)
	}
	if len(setup.Connect) > 0 {
		env = append(env, proxyEnv(token)...)
		env = append(env, g.Certs...)
	}
	return env, nil
}

// Resume sends the current budget and key to a gateway that is still running.
func (g *Gate) Resume(ctx context.Context, key string) error {
	budget, err := g.Budget(key)
	if err != nil {
		return err
	}
	container := g.sidecar(key, time.Time{})
	if err := container.Bound(ctx, budget); err != nil {
		return fmt.Errorf("cannot send the budget to the gateway of call %s: %w", key, err)
	}
	if g.Key != nil {
		fresh, err := g.Key.run(ctx)
		if err != nil {
			return err
		}
		if err := container.Renew(ctx, fresh); err != nil {
			return fmt.Errorf("cannot send the key to the gateway of call %s: %w", key, err)
		}
	}
	g.watch(ctx, container)
	g.renew(ctx, container)
	return nil
}

// renew renews the key of a call until Close.
func (g *Gate) renew(ctx context.Context, container sidecar) {
	if g.Key == nil || g.unrenew != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- g.Key.renew(ctx, container) }()
	g.unrenew = func() error { cancel(); return <-done }
}

// watch reads a gateway's log until Close.
func (g *Gate) watch(ctx context.Context, container sidecar) {
	if g.unwatch != nil {
		return
	}
	g.used.Store(nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); container.Watch(ctx, g.sees) }()
	g.unwatch = func() { cancel(); <-done }
}

// sees updates the usage of the call from a line of its gateway's log.
func (g *Gate) sees(e gateway.Entry) {
	is := usedBy(e.Sum)
	if was := g.used.Load(); was != nil {
		is.Signs, is.Requests = was.Signs, was.Requests
	}
	is.Signs++
	if text := requestText(e); text != "" {
		is.Requests = append(is.Requests, text)
	}
	g.used.Store(is)
	if g.Spent != nil {
		g.Spent(*e.Sum)
	}
}

// Used implements roles.Gate.
func (g *Gate) Used() *roles.Used { return g.used.Load() }

// Used returns the usage of a call so far, as the abl that runs it last saw it, nil if it is unknown.
func Used(p state.Project, call string) *roles.Used {
	return usedBy(storedGateLog(p.Call(call)).Sum())
}

// Requests returns the requests of a call to its model in words. Of a running call it is only the newest.
func Requests(r roles.Record) (all []string) {
	for _, e := range storedGateLog(r.Dir).Entries {
		if text := requestText(e); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// gateLogPath returns the file with the log of a call's gateway, in the folder of its record.
func gateLogPath(dir string) string { return filepath.Join(dir, "gateway.jsonl") }

// usedBy converts the sum in a gateway's log, which may be nil.
func usedBy(sum *gateway.Sum) *roles.Used {
	if sum == nil {
		return nil
	}
	known, complete := sum.Usage.All()
	part, _ := sum.Part.All()
	return &roles.Used{
		Tokens:  usage.Plus(known, part),
		USD:     sum.Cost,
		AtLeast: sum.Unknown > 0 || sum.Requests > 0 && !complete,
	}
}

// Close ends the gateway of a call and returns its traffic.
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
	if err != nil && !errors.Is(err, errGatewayGone) {
		return roles.Traffic{}, err
	}
	t := trafficOf(log, key)
	if notRenewed != nil {
		t.Notes = append(t.Notes, "the key was not renewed: "+notRenewed.Error())
	}
	sum := log.Sum()
	if sum != nil {
		g.sees(log.Entries[len(log.Entries)-1])
	}
	if sum != nil && sum.Requests > 0 && g.heard != nil {
		g.heard.Store(true)
	}
	if err == nil && log.Sum() != nil {
		return t, nil
	}
	unknown := "the gateway's log has no line with the usage of this call"
	if err != nil {
		unknown = "the usage of this call is unknown: " + err.Error()
	}
	t.Notes = append(t.Notes, unknown+"; the budget counts it as all that was left")
	budget, err := g.Budget(key)
	t.Charged = atMost(t.Charged, budget)
	return t, err
}

// atMost charges a call with unknown usage with all that its tightest budget leaves.
func atMost(known *roles.Charged, b gateway.Budget) *roles.Charged {
	const unbounded = math.MaxInt64
	left, usd := int64(unbounded), usage.USD(unbounded)
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
		all.USD = new(max(*cmp.Or(all.USD, new(usage.USD)), usd))
	}
	return all
}

// sidecar returns the gateway's container for a call.
func (g *Gate) sidecar(key string, deadline time.Time) sidecar {
	return sidecar{
		Engine: g.Engine,
		Name:   roles.GateName(g.ID, key),
		Image:  g.Sidecar,
		Inside: g.Network(g.Place),
		Way:    g.EgressEndpoint(),
		Keep:   gateLogPath(g.Project.Call(key)),
		Safe:   g.Safe,
		Labels: g.Labels("gateway", g.Place, key, deadline),
	}
}

// trafficOf summarizes a gateway's log for a call. Requests with unknown usage are a separate
// Usage, so that every sum is shown as a lower bound.
func trafficOf(log gateLog, call string) roles.Traffic {
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
		note := "the gateway's log is incomplete: the cost of %d requests and of all after its newest line is unknown"
		t.Notes = append(t.Notes, fmt.Sprintf(note, used.UnderWay))
	}
	if len(t.Usage) == 0 {
		t.Usage = []agent.Usage{{Count: usage.None()}} // known: nothing passed
	}
	t.Notes = append(t.Notes, refusalNotes(log.Entries)...)
	last := gateway.LastTrouble(log.Entries, call)
	t.Fault, t.Waiting, t.Finish = last.Fault, last.Waiting, last.Finish
	t.Calls, t.Unfinished, t.Left = last.Calls, last.Unfinished, last.Left
	return t
}
