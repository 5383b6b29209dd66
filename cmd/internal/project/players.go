package project

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/images"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/orchestrator"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// agents returns the agents of the project's settings.
func (s Folder) agents() environment.Agents {
	return environment.Agents{Conf: s.Conf, Root: s.Paths.Root}
}

// Player returns the agent, models and prompt of a role. It needs no engine; the image is set later.
func (s Folder) Player(role roles.Role) (orchestrator.Player, error) {
	chosen, err := s.agents().ForRole(role.Name)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	own, err := hostfs.Read(s.Paths.Root, s.Paths.Rel(s.Paths.Prompt(role.Name)), spec.MaxBytes)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return orchestrator.Player{}, exit.With(exit.Usage, fmt.Errorf("cannot read the %s's prompt: %w", role.Name, err),
			"replace it with a regular file of at most 1 MiB")
	}
	tmpl, err := prompts.Choose(role.Name, own)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	commands := map[string]map[string]config.Command{
		roles.Builder.Name: s.Conf.BuilderCommands, roles.Verifier.Name: s.Conf.VerifierCommands,
	}[role.Name]
	return orchestrator.Player{
		Agent:    chosen.Agent,
		Models:   chosen.Models,
		Efforts:  chosen.Efforts,
		Template: tmpl,
		Commands: environment.Commands(commands),
	}, nil
}

// Players returns the agents, models and prompts of both roles, by name.
func (s Folder) Players() (map[string]orchestrator.Player, error) {
	all := map[string]orchestrator.Player{}
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if err != nil {
			return nil, err
		}
		all[role.Name] = p
	}
	return all, nil
}

// Image returns the description of a role's image.
func (s Folder) Image(role roles.Role, a agent.Agent) (want images.Want, err error) {
	dockerfile := s.Conf.Images.Verifier.Dockerfile
	if want.Agent, want.Version, want.NPM = a.Image, a.Version, a.NPM; role.Name == roles.Builder.Name {
		want.Toolchain, dockerfile = s.Conf.Toolchain, s.Conf.Images.Builder.Dockerfile
	}
	want.Dockerfile, err = s.dockerfile(dockerfile)
	return want, err
}

// CheckImages returns an error if a Dockerfile of the project may not be built, or a seed file of a
// service does not exist.
func (s Folder) CheckImages() error {
	own := s.Conf.Images
	files := []string{own.Builder.Dockerfile, own.Verifier.Dockerfile, own.App.Dockerfile}
	for _, svc := range environment.Services(s.Conf) {
		files = append(files, s.Conf.App.Services[svc.Name].Dockerfile)
		if _, err := s.Conf.Seeds(s.Paths.Root, svc.Name); err != nil {
			return err
		}
	}
	for _, rel := range files {
		if _, err := s.dockerfile(rel); err != nil {
			return err
		}
	}
	return nil
}

func (s Folder) dockerfile(rel string) (string, error) {
	return environment.Dockerfile(s.Paths.Root, rel, s.Paths.Src, s.Paths.Tests)
}

// Key returns where the key of a role's agent was found, without the key; "" if it needs none.
func (s Folder) Key(p orchestrator.Player) (text string, found bool) {
	name := p.Agent.Provider.KeyVar
	if p.Agent.Provider.API == "" {
		return "", true
	}
	from := s.agents().KeyFrom(p.Agent)
	switch from {
	case "":
		return name + " is missing", false
	case environment.NoKey:
		return from, true
	}
	text = from + ", given only to the gateway"
	if p.Agent.Provider.Plan {
		text += ", a subscription"
	}
	return text, true
}

// Address returns where the requests of an agent go: the variable that sets the address, the
// address in use, and who set it. The key is empty for an agent that needs no provider.
func (s Folder) Address(p orchestrator.Player) config.Line {
	vars := p.Agent.Provider
	address, from := environment.AddressOf(vars, s.Conf)
	if vars.API != "" && address == "" {
		address, from = environment.OwnAddress(vars), "default"
	}
	return config.Line{Key: vars.BaseVar, Value: address, Source: from}
}

// CheckCaps returns an error if abl cannot enforce a cap on these players: a cap in dollars needs a price
// for every model that a gateway allows. It also fails if the project's prices cannot be read.
func (s Folder) CheckCaps(players map[string]orchestrator.Player) error {
	list, err := s.Prices()
	for _, role := range roles.Both() {
		if p := players[role.Name]; err == nil {
			err = money.CheckCaps(s.Conf, list, "the "+role.Name+"'s", p.Agent, p.Models)
		}
	}
	return err
}

// Prepares describes app.prepare and the hosts that it can reach. It returns "" if it is not set.
func (s Folder) Prepares() string {
	if s.Conf.App == nil || s.Conf.App.Prepare == "" {
		return ""
	}
	reach := cmp.Or(strings.Join(s.Allows(), ", "), "no host (network.allow)")
	return fmt.Sprintf("%q, if a lock file or manifest has changed; it can reach %s", s.Conf.App.Prepare, reach)
}

// Allows returns the entries of network.allow.
func (s Folder) Allows() (all []string) {
	for _, entry := range s.Conf.Network.Allow {
		all = append(all, string(entry))
	}
	return all
}
