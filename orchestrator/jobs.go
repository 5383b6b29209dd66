package orchestrator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/app"
	"abl/roles/boundary"
	"abl/roles/call"
)

// Player is the agent of a role with its models and settings.
type Player struct {
	Agent    agent.Agent
	Models   []string // in the order in which abl uses them
	Efforts  []string // of each model, see agent.Call
	Image    string
	Template string // the role's prompt, with its placeholders
	Commands []helper.Command
	Gate     roles.Gate        // nil without a gateway
	Hosts    []string          // registries that the role may reach
	Files    map[string][]byte // added to the input of each call
}

// RoleJobs creates the jobs of a phase's calls.
type RoleJobs struct {
	Number  int
	Project state.Project
	Specs   spec.Set
	App     *helper.App                 // how the system is started or run; nil without an app section
	Trials  []boundary.ServiceContainer // its services, which the Builder's calls get, too
	Players map[string]Player           // by role name
	Files   map[string]Files            // of a role's workspace, by role name
	Safe    *redact.Sanitizer           // removes secrets from prompts
	Adopted bool                        // the source is a clone of the user's repository
	Within  string                      // folder of the source that the Builder works in, "" for the whole
}

// Job returns the job of the next call of p in a role.
func (c *RoleJobs) Job(ctx context.Context, role roles.Role, p state.Phase, up app.Up) (call.Job, error) {
	if !role.App {
		role.Within, role.Reports = c.Within, path.Join(c.Within, role.Reports)
	}
	who := c.Players[role.Name]
	j := call.Job{
		Role:  role,
		Agent: who.Agent,
		Image: who.Image,
		Place: role.Name,
		Gate:  who.Gate,
		Files: who.Files,
		Call:  c.call(role, p),
		Round: p.Round,
		Cmds:  c.Commands(role, p, up),
	}
	if !role.App {
		j.Trials = c.Trials
	}
	if who.Gate == nil && !role.App && len(j.Trials) == 0 {
		j.Place = "" // it may reach nothing
	}
	if up.URL != "" {
		j.Env = append(j.Env[:len(j.Env):len(j.Env)], "ABL_APP_URL="+up.URL)
	}
	if c.App.IsProgram() {
		j.Env = append(j.Env, "ABL_EXCHANGE="+helper.Exchange)
	}
	if role.App {
		j.Stale = []string{failedspecs.FileName}
	}
	j.Prompt = func() (string, string, error) {
		text, files, err := c.Prompt(ctx, role, p, up)
		return text, files.String(), err
	}
	return j, nil
}

// call returns the agent's part of a job: its id, model and effort.
func (c *RoleJobs) call(role roles.Role, p state.Phase) agent.Call {
	key, who := roles.Key(c.Number, role, p.Step, p.Attempt), c.Players[role.Name]
	at, effort := min(p.Fallback[role.Name], len(who.Models)-1), ""
	if at < len(who.Efforts) {
		effort = who.Efforts[at]
	}
	return agent.Call{
		ID:        key,
		Role:      role.Name,
		Phase:     c.Number,
		Iteration: p.Iteration,
		Step:      p.Step,
		Attempt:   p.Attempt,
		Model:     who.Models[at],
		Effort:    effort,
		Session:   call.NewSession(),
		Prompt:    helper.Prompt,
		Dir:       path.Join(role.Dir, role.Within),
	}
}

// Commands returns the input of abl-cmd in the role's container. The Verifier's copy has the names
// of the commands and not their text, which belongs to the Builder.
func (c *RoleJobs) Commands(role roles.Role, p state.Phase, up app.Up) helper.CmdSpec {
	s := helper.CmdSpec{
		Role:      role.Name,
		Phase:     c.Number,
		Iteration: p.Iteration,
		Specs:     helper.Specs,
		Dir:       path.Join(role.Dir, role.Within),
	}
	for _, cmd := range c.Players[role.Name].Commands {
		if role.App {
			cmd.Command = ""
		}
		s.Commands = append(s.Commands, cmd)
	}
	if role.App {
		s.URL, s.Token = up.Broker, up.Token
	}
	if c.App.IsProgram() {
		app := *c.App
		s.App = &app
		if role.App {
			app.Command, app.Env = "", nil
		}
	}
	return s
}

// maxDescription is the largest size of project.md, in bytes. The agent may accept less.
const maxDescription = 16 << 20

// Prompt returns the prompt for the next call of p in a role, and the map of the role's files.
func (c *RoleJobs) Prompt(ctx context.Context, role roles.Role, p state.Phase, up app.Up) (string, call.ProjectMap, error) {
	var shown call.ProjectMap
	who := c.Players[role.Name]
	about, err := hostfs.Read(c.Project.Root, c.Project.Rel(c.Project.Description()), maxDescription)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return "", shown, fmt.Errorf("cannot read the project's description: %w", err)
	}
	paths, err := c.Files[role.Name](ctx, 50_000)
	if err != nil {
		return "", shown, fmt.Errorf("cannot list the %s's files: %w", role.Name, err)
	}
	var files []call.MapFile
	for _, path := range paths {
		f := call.MapFile{Path: c.Safe.Redact(path)}
		if fi, err := os.Lstat(filepath.Join(role.Workspace(c.Project), path)); err == nil {
			f.Size = fi.Size()
		}
		files = append(files, f)
	}
	shown = call.RenderMap(files)
	in := call.PromptInput{
		Role:      role,
		Template:  who.Template,
		ProjectMD: string(about),
		Specs:     c.Specs.UpTo(c.Number),
		Commands:  who.Commands,
		Phase:     c.Number,
		Iteration: p.Iteration,
		Attempt:   p.Attempt,
		Step:      p.Step,
		Report:    agent.ReportPath(role.Name, c.Number, p.Iteration, time.Now()),
		Last:      lastVerdict(p),
		App:       c.App,
		Services:  c.Trials,
		Adopted:   c.Adopted && !role.App,
		AppURL:    up.URL,
		Hosts:     who.Hosts,
		Map:       shown,
		Failed:    p.Failed,
		Stalled:   p.Stalled,
		Missing:   p.Why,
		Nonce:     rand.Text(),
	}
	if !role.App {
		in.Unprepared, in.Printed = up.Failed, p.AppPrinted
		if in.Absent, err = absent(c.Project); err != nil {
			return "", shown, err
		}
	}
	text, err := call.BuildPrompt(in)
	return c.Safe.Redact(text), shown, err
}

// lastVerdict returns the verdict of the last iteration, "" without one.
func lastVerdict(p state.Phase) string {
	if n := len(p.History); n > 0 {
		return p.History[n-1].Verdict
	}
	return ""
}

// Files lists the files of a directory, at most most of them.
type Files func(ctx context.Context, most int) (paths []string, err error)
