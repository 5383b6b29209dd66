package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/tartree"
	"abl/orchestrator"
	"abl/orchestrator/dirs"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/workspace"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/projectmap"
	"abl/roles/scenario"

	"golang.org/x/sys/unix"
)

// player resolves who plays a role; it needs no engine. Images come later.
func (s *session) player(role roles.Role) (orchestrator.Player, error) {
	name, models, cmds := s.conf.Agent.Builder, s.conf.Models.Builder, s.conf.BuilderCommands
	if role.Name == roles.Verifier.Name {
		name, models, cmds = s.conf.Agent.Verifier, s.conf.Models.Verifier, s.conf.VerifierCommands
	}
	a, err := agent.Find(name, s.scripted)
	if err != nil {
		return orchestrator.Player{}, fault(exit.Usage, err, "")
	}
	own, err := os.ReadFile(s.project.Prompt(role.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return orchestrator.Player{}, fmt.Errorf("cannot read the %s's prompt: %w", role.Name, err)
	}
	tmpl, _, err := prompts.Choose(role.Name, own)
	if err != nil {
		return orchestrator.Player{}, fault(exit.Usage, err, "")
	}
	p := orchestrator.Player{Agent: a, Model: a.DefaultModel(), Template: tmpl, Commands: commands(cmds)}
	if len(models) > 0 {
		p.Model = models[0]
	}
	return p, nil
}

// scripted makes the offline agent from the project's scenario.
func (s *session) scripted() (agent.Agent, error) {
	rel := s.conf.Agents[agent.ScriptedName].Scenario
	if rel == "" {
		return nil, fault(exit.Usage, errors.New("the scripted agent has no scenario"), "agents: {scripted: {scenario: .abl/scenario.yaml}}")
	}
	path := filepath.Join(s.project.Root, rel)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault(exit.Usage, fmt.Errorf("cannot read the scenario: %w", err), "")
	}
	sc, err := scenario.Parse(rel, data)
	if err != nil {
		return nil, fault(exit.Usage, err, "")
	}
	return agent.NewScripted(sc, filepath.Dir(path)), nil
}

// commands is a declared command table in the order of its names.
func commands(table map[string]config.Command) (all []dirs.Command) {
	for _, name := range sortedKeys(table) {
		c := table[name]
		all = append(all, dirs.Command{
			Name: name, Description: c.Description, Command: c.Command, Shown: c.Output == "shown",
			Background: c.Background, TimeoutMS: time.Duration(c.Timeout).Milliseconds(),
		})
	}
	return all
}

// giveKey lets a role talk to its provider with the person's own key.
func (s *session) giveKey(p *orchestrator.Player) error {
	name := agent.KeyName(p.Agent)
	if name == "" {
		return nil
	}
	value, _ := s.key(name)
	if value == "" {
		return noKey(name)
	}
	p.Direct = true
	p.Env = append(p.Env, name+"="+value)
	for _, setting := range directSettings {
		if v, _ := s.key(setting); v != "" {
			p.Env = append(p.Env, setting+"="+v)
		}
	}
	return nil
}

func noKey(name string) error {
	return fault(exit.Usage, fmt.Errorf("cannot find %s", name), fmt.Sprintf("add %s=… to .env, or choose another agent in .abl/config.yaml", name))
}

// directSettings reach a role beside its direct key: where its provider answers.
var directSettings = []string{"GOOGLE_GEMINI_BASE_URL"}

// hire brings the players on the stage and sets up what runs them.
func (st *stage) hire(ctx context.Context) error {
	st.site = &roles.Site{
		Engine: st.engine, ID: st.file.Project, Phase: st.phase, Image: st.have.holder, Pool: st.conf.Network.Pool,
		Egress: st.conf.Network.Egress, Direct: map[string]bool{},
	}
	st.cast = &orchestrator.Cast{
		Number: st.phase, Project: st.project, Specs: st.specs, App: st.appSpec(),
		Players: map[string]orchestrator.Player{}, Holder: st.site.Holder,
		Files: map[string]orchestrator.Files{roles.Builder.Name: files(st.src), roles.Verifier.Name: files(st.tests)},
	}
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := st.player(role)
		if err != nil {
			return err
		}
		if st.keys {
			if err := st.giveKey(&p); err != nil {
				return err
			}
		}
		p.Image = st.have.role[role.Name]
		st.site.Direct[role.Name] = p.Direct
		st.cast.Players[role.Name] = p
	}
	st.runner = &roles.Runner{
		Engine: st.engine, Project: st.project, ID: st.file.Project, UID: st.uid, GID: st.gid, Root: os.Geteuid() == 0, Person: st.person(),
		Box: st.limits(), Output: int64(st.conf.Limits.Output), Timeout: time.Duration(st.conf.Loop.CallTimeout), Out: st.out,
	}
	st.app = st.newApp()
	return nil
}

// person is whose the project is.
func (s *session) person() [2]int {
	var fi unix.Stat_t
	if err := unix.Stat(s.project.Root, &fi); err != nil {
		return [2]int{os.Getuid(), os.Getgid()}
	}
	return [2]int{int(fi.Uid), int(fi.Gid)}
}

func (st *stage) limits() sandbox.Limits {
	l := st.conf.Limits
	return sandbox.Limits{Memory: int64(l.Memory), CPUs: l.CPUs, Pids: l.Pids, FileSize: max(int64(l.Output), int64(l.Disk)), OpenFile: 4096}
}

func (s *session) appSpec() *dirs.App {
	a := s.conf.App
	if a == nil {
		return nil
	}
	return &dirs.App{Command: a.Command, Port: a.Port, Path: a.Ready.Path, TimeoutMS: time.Duration(a.Ready.Timeout).Milliseconds()}
}

func (st *stage) newApp() *roles.App {
	deadline := time.Now().Add(time.Duration(st.conf.Loop.CallTimeout) + 5*time.Minute)
	app := &roles.App{
		Engine: st.engine, Site: st.site, Project: st.project, ID: st.file.Project, Image: st.have.app,
		UID: st.uid, GID: st.gid, Root: os.Geteuid() == 0, Box: st.limits(), Copy: st.copyMode(), Tree: func(w io.Writer) error { return tartree.Write(w, st.project.Src, ".git") }, Out: st.out,
		Spec: dirs.BrokerSpec{
			Port: dirs.BrokerPort, Dir: dirs.Src, App: st.appSpec(), Commands: commands(st.conf.VerifierCommands),
			LogMax: 64 << 20, Deadline: deadline.Unix(),
		},
	}
	if a := st.conf.App; a != nil {
		for _, name := range sortedKeys(a.Env) {
			app.Env = append(app.Env, name+"="+a.Env[name])
		}
		for _, name := range sortedKeys(a.Services) {
			svc := a.Services[name]
			box := roles.ServiceBox{Name: name, Image: svc.Image}
			for _, k := range sortedKeys(svc.Env) {
				box.Env = append(box.Env, k+"="+svc.Env[k])
			}
			app.Services = append(app.Services, box)
			app.Spec.Services = append(app.Spec.Services, dirs.Service{Name: name, Port: svc.Ready.Port, TimeoutMS: time.Duration(svc.Ready.Timeout).Milliseconds()})
		}
	}
	return app
}

// copyMode is how the app gets its tree: a copy-on-write view where the engine
// runs on this machine and the path has none of the characters that end a
// mount option, else a copy.
func (st *stage) copyMode() string {
	mode := "auto"
	if st.conf.App != nil {
		mode = st.conf.App.Copy
	}
	if mode == "auto" {
		mode = "overlay"
		if !st.info.Local || strings.ContainsAny(st.project.Src, `,:\`) {
			mode = "tar"
		}
	}
	return mode
}

// files lists a workspace for the project map.
func files(repo *workspace.Repo) orchestrator.Files {
	return func(ctx context.Context) ([]projectmap.File, error) {
		paths, _, err := repo.Files(ctx, 50_000)
		if err != nil {
			return nil, err
		}
		all := make([]projectmap.File, 0, len(paths))
		for _, p := range paths {
			f := projectmap.File{Path: p}
			if fi, err := os.Lstat(filepath.Join(repo.Dir(), p)); err == nil {
				f.Size = fi.Size()
			}
			all = append(all, f)
		}
		return all, nil
	}
}

// repo lets the loop commit through a workspace.
type repo struct{ *workspace.Repo }

// Snapshot commits the tree under the call's key.
func (r repo) Snapshot(ctx context.Context, subject, key string) (orchestrator.Commit, error) {
	s, err := r.Repo.Snapshot(ctx, workspace.Message{Subject: subject, Trailers: [][2]string{{"Abl-Call", key}}, When: time.Now()})
	if err != nil {
		return orchestrator.Commit{}, err
	}
	c := orchestrator.Commit{Hash: s.Commit.Hash, Changed: s.Changed}
	for _, skipped := range s.Skipped {
		c.Skipped = append(c.Skipped, skipped.Path+": "+skipped.Why)
	}
	return c, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
