package environment

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"abl/internal/gateway"
	"abl/roles/agent"
)

// Copilot CLI's own variable for the API of its provider, and the values that abl supports.
const (
	copilotType      = "COPILOT_PROVIDER_TYPE"
	copilotOpenAI    = "openai"
	copilotAzure     = "azure"
	copilotAnthropic = "anthropic"
)

// Prefixes of Anthropic's tokens: of a plan, and of an API key.
const (
	planToken = "sk-ant-oat"
	apiKey    = "sk-ant-api"
)

// LoggedIn returns an agent with the login that its variables or agents.NAME.login choose.
func (s Agents) LoggedIn(name string) (agent.Agent, error) {
	a, err := s.Find(name)
	if err != nil || a.Provider.API == "" {
		return a, err
	}
	if !a.Provider.Own {
		provider := s.provider(name)
		owner, err := s.Find(provider)
		if err != nil {
			return a, err
		}
		if a.Provider, err = s.login(provider, owner.Logins); err != nil {
			return a, err
		}
	}
	_, _, err = s.fixed(name)
	return a, err
}

// provider returns the name of the agent whose provider an agent uses.
func (s Agents) provider(name string) string { return cmp.Or(s.Conf.Agents[name].Provider, name) }

// fixed returns the headers and query parameters of each request of an agent to its provider.
func (s Agents) fixed(name string) (headers, query map[string]gateway.Secret, err error) {
	name = s.provider(name)
	read := func(part string, from map[string]string) map[string]gateway.Secret {
		all := map[string]gateway.Secret{}
		for key, text := range from {
			value, ferr := s.Conf.Fixed("agents."+name+"."+part+"."+key, text)
			all[key], err = gateway.Secret(value), cmp.Or(err, ferr)
		}
		return all
	}
	own := s.Conf.Agents[name]
	return read("headers", own.Headers), read("query", own.Query), err
}

// login chooses one of the logins of one of abl's agents.
func (s Agents) login(name string, all []agent.Provider) (agent.Provider, error) {
	var set []agent.Provider
	for _, one := range all {
		value, _ := s.Conf.Key(one.KeyVar)
		if err := fitsLogin(one, value); err != nil {
			return one, err
		}
		if value != "" {
			set = append(set, one)
		}
	}
	key, wanted := "agents."+name+".login", s.Conf.Agents[name].Login
	chosen := append(set[:len(set):len(set)], all...)[:1]
	switch {
	case wanted != "":
		var words []string
		chosen = nil
		for _, one := range all {
			words = append(words, one.Login)
			if one.Login == wanted {
				chosen = []agent.Provider{one}
			}
		}
		if chosen == nil {
			return all[0], &Error{Class: Usage, Err: fmt.Errorf("%s: %s has no login %q; it has %s", key, name, wanted,
				strings.Join(words, ", "))}
		}
	case len(set) > 1:
		do := fmt.Sprintf("unset one of them, or set agents.%s.login to %s or %s in .abl/config.yaml", name, set[0].Login,
			set[1].Login)
		return all[0], &Error{Usage, do, fmt.Errorf("cannot choose a login for %s: both %s and %s are set", name,
			set[0].KeyVar, set[1].KeyVar)}
	case len(set) == 1 && set[0].Plan:
		do := fmt.Sprintf("docs/providers.md describes the vendor's terms; set agents: {%s: {login: "+
			"%s}} in .abl/config.yaml to use the plan", name, set[0].Login)
		return all[0], &Error{Usage, do, fmt.Errorf("cannot use %s: abl uses a plan only if the settings allow it",
			set[0].KeyVar)}
	}
	return s.complete(name, chosen[0])
}

// fitsLogin fails if a variable contains the token of another login.
func fitsLogin(one agent.Provider, value string) error {
	switch {
	case !one.Plan && strings.HasPrefix(value, planToken):
		do := "put it into CLAUDE_CODE_OAUTH_TOKEN, and agents: {claude: {login: " +
			"plan}} into .abl/config.yaml (docs/providers.md)"
		return &Error{Usage, do, fmt.Errorf("cannot use %s: it contains the token of a Claude plan, which is not an API key",
			one.KeyVar)}
	case one.Plan && strings.HasPrefix(value, apiKey):
		return &Error{Usage, "put it into ANTHROPIC_API_KEY",
			fmt.Errorf("cannot use %s: it contains an API key, which is not the token of a plan", one.KeyVar)}
	}
	return nil
}

// regionName matches a region, which is part of an address: other characters could change the host.
var regionName = regexp.MustCompile(`^[a-z0-9-]+$`)

// complete sets what a login needs in addition to its key.
func (s Agents) complete(name string, p agent.Provider) (agent.Provider, error) {
	if name == "copilot" {
		switch kind, _ := s.Conf.Key(copilotType); kind {
		case "", copilotOpenAI, copilotAnthropic: // Find has chosen the API
		case copilotAzure:
			p.Path, p.NeedsBase = "/openai/v1", true
			if p.Header == "" {
				p.Header = "Api-Key"
			}
		default:
			return p, &Error{Class: Usage, Err: fmt.Errorf("%s is %q, want %s, %s or %s", copilotType, kind, copilotOpenAI,
				copilotAzure, copilotAnthropic)}
		}
	}
	if base, _ := s.Conf.Key(p.BaseVar); p.NeedsBase && base == "" {
		do := fmt.Sprintf("add %s=https://… to where %s is set", p.BaseVar, p.KeyVar)
		return p, &Error{Usage, do, fmt.Errorf("cannot find %s, which the login %s of %s needs", p.BaseVar, p.Login, name)}
	}
	if p.RegionVar != "" {
		region, _ := s.Conf.Key(p.RegionVar)
		if !regionName.MatchString(region) {
			do := fmt.Sprintf("add %s=us-east-1, or another region, to .env", p.RegionVar)
			return p, &Error{Usage, do, fmt.Errorf("cannot use %s: %s is %q, want the name of a region", p.KeyVar, p.RegionVar,
				region)}
		}
		p.Upstream = strings.ReplaceAll(p.Upstream, "{region}", region)
		p.ContainerVars += " " + p.RegionVar + "=" + region
	}
	return p, nil
}

// copilotAPI returns the API that Copilot CLI uses.
func (s Agents) copilotAPI() string {
	if kind, _ := s.Conf.Key(copilotType); kind == copilotAnthropic {
		return kind
	}
	return cmp.Or(s.Conf.Agents["copilot"].API, "openai-responses")
}

// Missing returns the error for a login without a key.
func Missing(p agent.Provider) error {
	return &Error{Usage, fmt.Sprintf("add %s=… to .env, or choose another agent in .abl/config.yaml", p.KeyVar),
		fmt.Errorf("cannot find %s", p.KeyVar)}
}

// OwnAddress returns the address at which the vendor of a login serves its API.
func OwnAddress(p agent.Provider) string { return cmp.Or(p.Upstream, gateway.Address(p.API)) }

// PlanError returns the error for a budget in dollars with a subscription.
func PlanError(who string, p agent.Provider) error {
	return &Error{Usage, "give the budget in tokens: budget: {phase: {tokens: 2000000}}",
		fmt.Errorf("cannot enforce a budget in US dollars: %s uses a subscription (%s), which has no price per token", who,
			p.KeyVar)}
}
