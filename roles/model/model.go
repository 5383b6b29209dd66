// Package model asks the APIs of models through their makers' own SDKs, one
// question at a time: what was sent and what came back are kept as they were on
// the wire, an answer that is not whole says so, and trouble that passes is
// waited out. No prompt, agent or budget may be in it.
package model

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"abl/internal/gateway"
	"abl/internal/gateway/meter"
	"abl/internal/tokens"
)

// Finish says whether an answer is whole.
type Finish string

// The ways an answer ends. Whatever a provider says that is not known to mean a
// whole answer is one of the others.
const (
	Whole   Finish = "whole"
	Cut     Finish = "cut"     // it reached a limit, or nothing says that it is whole
	Blocked Finish = "blocked" // a filter or the model itself refused
)

// Answer is what a model said.
type Answer struct {
	Text   string
	Finish Finish
	Reason string // the provider's own word for how it ended
	Model  string // as the provider names it, else as it was asked
	Usage  tokens.Count
	Body   []byte // of the response, as received
	Tries  int
}

// Names of the models that are known.
const (
	Gemini = "gemini-2.5-pro"
	GPT    = "gpt-5"
)

// provider is what differs between APIs.
type provider struct {
	keyVar, baseVar string
	api             meter.API
	// ask makes one try, once being the same for each try of a question. It returns the
	// SDK's error, or what the SDK understood of an answer.
	ask func(ctx context.Context, c *Client, by *http.Client, prompt, once string) (Answer, error)
}

// providers are those whose APIs models are asked through.
var providers = map[string]provider{Google: gemini, OpenAI: openAI}

// KeyVar is the variable that holds the key for a provider, and BaseVar the one
// that gives another address.
func KeyVar(provider string) string { return providers[provider].keyVar }

// BaseVar is the variable that gives another address for a provider.
func BaseVar(provider string) string { return providers[provider].baseVar }

// Config is how a model is asked.
type Config struct {
	Provider  string // one of Providers
	Key       string
	Base      string // another address than the provider's own
	Transport http.RoundTripper
	Retries   int           // further tries after trouble that passes
	Patience  time.Duration // for one try
	// Wait is told why the next try has to wait and how long, and does so.
	Wait func(ctx context.Context, why error, d time.Duration) error
}

// Client asks one model.
type Client struct {
	Config
	name string
	p    provider
}

// New is a client of the model of that name.
func New(name string, c Config) (_ *Client, err error) {
	p := providers[c.Provider]
	if c.Base, err = address(c.Base, p.baseVar); err != nil {
		return nil, err
	}
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	return &Client{c, name, p}, nil
}

// Name is the model's name.
func (c *Client) Name() string { return c.name }

// address checks the address that a person gives instead of the provider's own.
// The key goes there, so it has to be encrypted or stay on this machine.
func address(raw, name string) (string, error) {
	if raw == "" {
		return "", nil
	}
	base, local, err := gateway.ParseAddress(raw)
	if err != nil {
		return "", fmt.Errorf("cannot use %s: %w", name, err)
	}
	if base.Scheme == "http" && !local {
		return "", fmt.Errorf("%s would send the key to %s unencrypted: use https", name, base.Hostname())
	}
	return base.String(), nil
}
