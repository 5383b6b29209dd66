package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/sanitize"
	"abl/orchestrator"
	"abl/orchestrator/dirs"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
	"abl/orchestrator/workspace"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/projectmap"
)

// plan is what a phase would do, without doing any of it.
type plan struct {
	Phase  int        `json:"phase"`
	Why    string     `json:"why"`
	Budget string     `json:"budget"`
	Roles  []rolePlan `json:"roles"`
}

type rolePlan struct {
	Role     string   `json:"role"`
	Agent    string   `json:"agent"`
	Model    string   `json:"model"`
	Key      string   `json:"key"`
	Mounts   []string `json:"mounts"`
	Networks []string `json:"networks"`
	Prompt   string   `json:"prompt"`
}

// dryRun shows both prompts, mounts, networks, models and budget; nothing is
// started, called or changed.
func (s *session) dryRun(ctx context.Context, n int) error {
	specs := s.specs()
	f, err := s.state()
	if err != nil {
		return err
	}
	a, err := admit(f, specs, n, s.in.Bool("again"))
	if err != nil {
		return err
	}
	if err := s.checkCaps(); err != nil {
		return err
	}
	p := a.Open
	if p.Status == state.Ready {
		p.Iteration, p.Step, p.Attempt = 1, p.Step+1, 1
	}
	out := plan{Phase: n, Why: a.Why, Budget: s.capText(), Roles: []rolePlan{}}
	for _, role := range casting(a.Go) {
		r, err := s.planRole(ctx, role, p, f, specs, n)
		if err != nil {
			return err
		}
		out.Roles = append(out.Roles, r)
	}
	if s.in.Bool("json") {
		return json.NewEncoder(s.in.Stdout).Encode(out)
	}
	out.print(s.in.Stdout)
	return nil
}

// casting is who would be called.
func casting(willRun bool) []roles.Role {
	if !willRun {
		return nil
	}
	return []roles.Role{roles.Builder, roles.Verifier}
}

func (s *session) planRole(ctx context.Context, role roles.Role, p state.Phase, f *state.File, specs spec.Set, n int) (rolePlan, error) {
	who, err := s.player(role)
	if err != nil {
		return rolePlan{}, err
	}
	r := rolePlan{Role: role.Name, Agent: who.Agent.Name(), Model: who.Model, Key: "none needed"}
	if name := agent.KeyName(who.Agent); name != "" {
		r.Key = s.keyText(name)
	}
	c := &orchestrator.Cast{
		Number: n, Project: s.project, Specs: specs, App: s.appSpec(),
		Players: map[string]orchestrator.Player{role.Name: who},
		Files:   map[string]orchestrator.Files{role.Name: filesAsTheyAre(role.Workspace(s.project), workspace.Options{})},
	}
	var url string
	if a := s.appSpec(); a != nil {
		url = fmt.Sprintf("http://%s:%d", dirs.AppAlias, a.Port)
	}
	if r.Prompt, _, err = c.Prompt(ctx, role, p, url, nil); err != nil {
		return r, err
	}
	for _, m := range roles.Mounts(role, s.project, roles.Record{Dir: s.project.Call(roles.Key(n, role, p.Step, p.Attempt))}) {
		r.Mounts = append(r.Mounts, fmt.Sprintf("%s → %s (%s)", s.project.Rel(m.Source), m.Target, access(m)))
	}
	site := &roles.Site{ID: f.Project, Egress: s.conf.Network.Egress, Direct: map[string]bool{role.Name: agent.KeyName(who.Agent) != ""}}
	for _, ep := range site.Reach(role.Name).Endpoints {
		r.Networks = append(r.Networks, ep.Network)
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
func filesAsTheyAre(dir string, o workspace.Options) orchestrator.Files {
	return func(ctx context.Context) ([]projectmap.File, error) {
		if _, err := os.Lstat(filepath.Join(dir, ".git", "HEAD")); err != nil {
			return nil, nil
		}
		repo, err := workspace.Open(dir, o)
		if err != nil {
			return nil, err
		}
		return files(repo)(ctx)
	}
}

func (p plan) print(w io.Writer) {
	fmt.Fprintf(w, "phase %d: %s\nbudget: %s\n", p.Phase, p.Why, p.Budget)
	for _, r := range p.Roles {
		fmt.Fprintf(w, "\n%s: agent %s, model %s, key %s\n", r.Role, r.Agent, r.Model, r.Key)
		fmt.Fprintf(w, "  networks: %s\n", strings.Join(r.Networks, ", "))
		for _, m := range r.Mounts {
			fmt.Fprintf(w, "  mount: %s\n", m)
		}
		fmt.Fprintf(w, "  prompt:\n")
		for line := range strings.Lines(r.Prompt) {
			fmt.Fprintf(w, "  | %s\n", sanitize.String(strings.TrimRight(line, "\n")))
		}
	}
}
