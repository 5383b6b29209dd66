package phase

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/git"
	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// plan is what a phase would do, without doing any of it.
type plan struct {
	Phase  int        `json:"phase"`
	Why    string     `json:"why"`
	Budget string     `json:"budget"`
	Last   string     `json:"last"` // what the phases before cost
	Roles  []rolePlan `json:"roles"`
}

type rolePlan struct {
	Role     string   `json:"role"`
	Agent    string   `json:"agent"`
	Model    string   `json:"model"`
	Key      string   `json:"key"`
	Mounts   []string `json:"mounts"`
	Networks []string `json:"networks"`
	Gateway  []string `json:"gateway,omitempty"` // networks of the role's gateway
	Allow    []string `json:"allow,omitempty"`   // registries that its tools reach through it
	Prompt   string   `json:"prompt"`
}

// DryRun shows both prompts, mounts, networks, models and budget; nothing is
// started, called or changed.
func (s *Project) DryRun(ctx context.Context, n int) error {
	specs := s.Specs()
	f, err := s.State()
	if err != nil {
		return err
	}
	a, err := orchestrator.Admit(f, specs, n, s.In.Bool("again"))
	if err != nil {
		return err
	}
	for _, check := range []func() error{s.CheckCaps, s.CheckImages} {
		if err := check(); err != nil {
			return err
		}
	}
	p := a.Open
	if p.Status == state.Ready || p.Status == state.Stale {
		p.Iteration, p.Step, p.Attempt = 1, p.Step+1, 1
	}
	out := plan{Phase: n, Why: a.Why, Budget: capText(s.Conf.Budget), Last: s.lastCosts(f, n), Roles: []rolePlan{}}
	who := roles.Both()
	if !a.Go {
		who = nil
	}
	for _, role := range who {
		r, err := s.planRole(ctx, role, p, f, specs, n)
		if err != nil {
			return err
		}
		out.Roles = append(out.Roles, r)
	}
	if s.In.Bool("json") {
		return s.In.JSON(out)
	}
	out.print(s.In.Stdout)
	return nil
}

func (s *Project) planRole(ctx context.Context, role roles.Role, p state.Phase, f *state.File, specs spec.Set, n int) (rolePlan, error) {
	who, err := s.Player(role)
	if err != nil {
		return rolePlan{}, err
	}
	r := rolePlan{Role: role.Name, Agent: who.Agent.Name, Model: who.Model, Key: "none needed", Networks: []string{}}
	vars := who.Agent.Provider
	served := vars.API != ""
	if served {
		r.Key = s.KeyText(vars.KeyVar)
	}
	c := &orchestrator.RoleJobs{
		Number: n, Project: s.Paths, Specs: specs, App: environment.AppSpec(s.Conf), Safe: s.In.Safe,
		Players: map[string]orchestrator.Player{role.Name: who},
		Files:   map[string]orchestrator.Files{role.Name: filesAsTheyAre(role.Workspace(s.Paths))},
	}
	var url string
	if a := environment.AppSpec(s.Conf); a != nil {
		url = fmt.Sprintf("http://%s:%d", helper.AppAlias, a.Port)
	}
	if r.Prompt, _, err = c.Prompt(ctx, role, p, url, nil); err == nil {
		r.Prompt, err = agent.Prompt(who.Agent, agent.Call{Role: role.Name, Phase: n, Iteration: p.Iteration, Attempt: p.Attempt}, r.Prompt)
	}
	if err != nil {
		return r, err
	}
	for _, m := range roles.Mounts(role, s.Paths, roles.Record{Dir: s.Paths.Call(roles.Key(n, role, p.Step, p.Attempt))}) {
		r.Mounts = append(r.Mounts, fmt.Sprintf("%s → %s (%s)", s.Paths.Rel(m.Source), m.Target, access(m)))
	}
	fetches := role.Fetches && len(s.Conf.Network.Allow) > 0
	boxes := &roles.Boxes{ID: f.Project, Egress: s.Conf.Network.Egress, Gated: map[string]bool{role.Name: served || fetches}}
	if served || fetches || role.App {
		for _, ep := range boxes.Reach(role.Name).Endpoints {
			r.Networks = append(r.Networks, ep.Network)
		}
	}
	if fetches {
		r.Allow = s.Conf.Network.Allow
	}
	if served || fetches {
		r.Gateway = []string{boxes.Network(role.Name), boxes.Way().Network}
	}
	return r, nil
}

func access(m sandbox.Mount) string {
	if m.ReadOnly {
		return "read-only"
	}
	return "read and write"
}

// filesAsTheyAre lists a workspace without making a repository in it.
func filesAsTheyAre(dir string) orchestrator.Files {
	return orchestrator.FilesOf(dir, func(ctx context.Context, most int) ([]string, error) {
		if _, err := os.Lstat(filepath.Join(dir, ".git", "HEAD")); err != nil {
			return nil, nil
		}
		repo, err := git.Open(dir, git.Options{})
		if err != nil {
			return nil, err
		}
		return repo.Files(ctx, most)
	})
}

func (p plan) print(w io.Writer) {
	fmt.Fprintf(w, "phase %d: %s\nbudget: %s\nlast: %s\n", p.Phase, p.Why, p.Budget, p.Last)
	for _, r := range p.Roles {
		fmt.Fprintf(w, "\n%s: agent %s, model %s, key %s\n", r.Role, r.Agent, r.Model, r.Key)
		fmt.Fprintf(w, "  networks: %s\n", cmp.Or(strings.Join(r.Networks, ", "), "none"))
		if len(r.Gateway) > 0 {
			fmt.Fprintf(w, "  gateway on: %s\n", strings.Join(r.Gateway, ", "))
		}
		if len(r.Allow) > 0 {
			fmt.Fprintf(w, "  registries: %s\n", strings.Join(r.Allow, ", "))
		}
		for _, m := range r.Mounts {
			fmt.Fprintf(w, "  mount: %s\n", m)
		}
		fmt.Fprintf(w, "  prompt:\n")
		for line := range strings.Lines(r.Prompt) {
			fmt.Fprintf(w, "  | %s\n", strings.TrimRight(line, "\n"))
		}
	}
}
