package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"abl/cmd/internal/money"
	"abl/cmd/internal/project"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/app"
	"abl/roles/boundary"
	"abl/roles/environment"
)

// plan is what `abl phase N --dry-run` prints.
type plan struct {
	Phase    int        `json:"phase"`
	Why      string     `json:"why"`
	Budget   string     `json:"budget"`
	Last     string     `json:"last"`               // cost of earlier phases
	Build    string     `json:"build,omitempty"`    // app.build
	Prepare  string     `json:"prepare,omitempty"`  // app.prepare
	Services []string   `json:"services,omitempty"` // of the app
	Notify   string     `json:"notify,omitempty"`   // notify.command
	Roles    []rolePlan `json:"roles"`
}

type rolePlan struct {
	Role     string   `json:"role"`
	Agent    string   `json:"agent"`
	Model    string   `json:"model"`
	Effort   string   `json:"effort,omitempty"`
	Key      string   `json:"key"`
	Address  string   `json:"address,omitempty"`   // of the provider, and who set it
	Tools    []string `json:"toolchain,omitempty"` // of its image, in addition to abl's tools
	Mounts   []string `json:"mounts"`
	Networks []string `json:"networks"`
	Gateway  []string `json:"gateway,omitempty"` // networks of the role's gateway
	Allow    []string `json:"allow,omitempty"`   // hosts that its tools reach through the gateway
	Prompt   string   `json:"prompt"`
}

// DryRun prints both prompts, mounts, networks, models and budget. It starts and changes nothing.
func DryRun(ctx context.Context, s *project.Project, n int) error {
	specs := s.Specs()
	f, err := s.State()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(s.Paths.State()); errors.Is(err, fs.ErrNotExist) {
		f.Project = "ID" // the project gets its id when its first phase starts
	}
	a, err := orchestrator.Admit(f, specs, n, askedOf(s.Folder, s.In.Bool("again")))
	if err != nil {
		return err
	}
	players, err := s.Players()
	if err == nil {
		err = cmp.Or(s.CheckCaps(players), s.CheckImages())
	}
	if err != nil {
		return err
	}
	p := a.Open
	if p.Status == state.Ready || p.Status == state.Stale {
		p.Iteration, p.Step, p.Attempt = 1, p.Step+1, 1
	}
	out := plan{
		Phase:   n,
		Why:     a.Why,
		Budget:  money.CapsText(s.Conf.Budget),
		Last:    s.LastCosts(f, n),
		Prepare: s.Prepares(),
		Build:   builds(s),
		Roles:   []rolePlan{},
	}
	for _, svc := range environment.Services(s.Conf) {
		from := cmp.Or(svc.Image, s.Conf.App.Services[svc.Name].Dockerfile)
		out.Services = append(out.Services, fmt.Sprintf("%s: %s, port %d", svc.Name, from, svc.Port))
	}
	if command := s.Conf.Notify.Command; command != "" {
		out.Notify = fmt.Sprintf("%q, from %s", command, cmp.Or(s.Conf.Sources["notify.command"], s.Conf.File))
	}
	who := roles.Both()
	if !a.Go {
		who = nil
	}
	for _, role := range who {
		r, err := planRole(ctx, s, role, players[role.Name], p, f, specs, n)
		if err != nil {
			return err
		}
		out.Roles = append(out.Roles, r)
	}
	return cmp.Or(s.In.Show(out, out.print), s.Trusted(ctx))
}

// builds returns app.build, "" if it is not set.
func builds(s *project.Project) string {
	if s.Conf.App == nil {
		return ""
	}
	return s.Conf.App.Build
}

func planRole(
	ctx context.Context, s *project.Project, role roles.Role, who orchestrator.Player, p state.Phase, f *state.File,
	specs spec.Set, n int,
) (r rolePlan, err error) {
	r = rolePlan{Role: role.Name, Agent: who.Agent.Name, Model: who.Models[0], Effort: who.Efforts[0],
		Networks: []string{}}
	key, _ := s.Key(who)
	r.Key = cmp.Or(key, "none needed")
	if a := s.Address(who); a.Key != "" {
		r.Address = fmt.Sprintf("%s (%s: %s)", a.Value, a.Key, a.Source)
	}
	c := newJobs(s, n, specs)
	c.Players[role.Name] = who
	c.Files[role.Name] = func(ctx context.Context, most int) ([]string, error) {
		return s.WorkspaceFiles(ctx, role.Workspace(s.Paths), most)
	}
	fetches := role.Fetches && len(s.Conf.Network.Allow) > 0
	gated := key != "" || fetches
	containers := &boundary.Containers{ID: f.Project, Egress: s.Conf.Network.Egress, Port: environment.AppPort(s.Conf)}
	containers.Gated = map[string]bool{role.Name: gated}
	containers.Trial = len(c.Trials) > 0
	if !role.App {
		role.Within = s.Conf.Source.Dir
	}
	if r.Prompt, _, err = c.Prompt(ctx, role, p, app.Up{URL: c.App.URL()}); err == nil {
		r.Prompt, err = agent.Prompt(who.Agent, agent.Call{Role: role.Name, Phase: n, Iteration: p.Iteration,
			Attempt: p.Attempt}, r.Prompt)
	}
	if err != nil {
		return r, err
	}
	for _, m := range roles.Mounts(role, s.Paths, roles.Record{Dir: s.Paths.Call(roles.Key(n, role, p.Step, p.Attempt))}) {
		access := "read and write"
		if m.ReadOnly {
			access = "read-only"
		}
		r.Mounts = append(r.Mounts, fmt.Sprintf("%s → %s (%s)", s.Paths.Rel(m.Source), m.Target, access))
	}
	if gated || role.App || containers.Trial {
		for _, ep := range containers.Reach(role.Name).Endpoints {
			r.Networks = append(r.Networks, ep.Network)
		}
	}
	if role.Name == roles.Builder.Name {
		r.Tools = s.Conf.Toolchain.Names()
	}
	if fetches {
		r.Allow = s.Allows()
	}
	if gated {
		r.Gateway = []string{containers.Network(role.Name), containers.EgressEndpoint().Network}
	}
	return r, nil
}

func (p plan) print(w io.Writer) {
	why := strings.TrimPrefix(p.Why, fmt.Sprintf("phase %d ", p.Phase))
	fmt.Fprintf(w, "phase %d: %s\nbudget: %s\nlast: %s\n", p.Phase, why, p.Budget, p.Last)
	fmt.Fprintf(w, "prepare: %s\nbuild: %s\n", cmp.Or(p.Prepare, "none"), cmp.Or(p.Build, "none"))
	for _, svc := range p.Services {
		fmt.Fprintf(w, "service %s\n", svc)
	}
	if p.Notify != "" {
		fmt.Fprintf(w, "notify: %s\n", p.Notify)
	}
	for _, r := range p.Roles {
		model := r.Model
		if r.Effort != "" {
			model += ", effort " + r.Effort
		}
		fmt.Fprintf(w, "\n%s: agent %s, model %s, key %s\n", r.Role, r.Agent, model, r.Key)
		if r.Address != "" {
			fmt.Fprintf(w, "  provider: %s\n", r.Address)
		}
		networks := r.Networks
		if len(networks) == 0 {
			networks = []string{"none"}
		}
		for _, of := range []struct {
			what  string
			names []string
		}{{"toolchain", r.Tools}, {"networks", networks}, {"gateway on", r.Gateway}, {"registries", r.Allow}} {
			if len(of.names) > 0 {
				fmt.Fprintf(w, "  %s: %s\n", of.what, strings.Join(of.names, ", "))
			}
		}
		for _, m := range r.Mounts {
			fmt.Fprintf(w, "  mount: %s\n", m)
		}
		fmt.Fprintf(w, "  prompt:\n  | %s\n", strings.ReplaceAll(strings.TrimSuffix(r.Prompt, "\n"), "\n", "\n  | "))
	}
}
