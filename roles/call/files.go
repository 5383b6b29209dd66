package call

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/boundary"
)

// writeFiles writes the call's input, and the two empty files for its output. The prompt is
// empty for a program that abl only starts.
func (r *Runner) writeFiles(j Job, rec roles.Record, cmd agent.Command, prompt string, deadline time.Time) error {
	if prompt != "" {
		var err error
		if prompt, err = agent.Prompt(j.Agent, j.Call, prompt); err != nil {
			return err
		}
	}
	spec := helper.RunSpec{
		Argv:     cmd.Argv,
		Dir:      path.Join(j.Role.Dir, j.Role.Within),
		Stdout:   helper.Out,
		Stderr:   helper.Err,
		Deadline: deadline.Unix(),
		Probe:    helper.Probe,
		LimitMS:  j.Limit.Milliseconds(),
	}
	files := map[string][]byte{}
	if prompt != "" {
		files[path.Base(helper.Prompt)], spec.Stdin = []byte(prompt), helper.Prompt
	}
	maps.Copy(files, cmd.Files)
	maps.Copy(files, j.Files)
	j.Cmds.Reports = helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports)
	return errors.Join(boundary.WriteInput(rec, files, map[string]any{"run.json": spec, "commands.json": j.Cmds}),
		r.CreateFiles(rec.Stdout(), rec.Stderr()))
}

// pointLast makes the role's last.log a link to this call's output.
func (r *Runner) pointLast(j Job, rec roles.Record) error {
	last := r.Project.LastLog(j.Role.Name)
	if err := os.Remove(last); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(last), rec.Stdout())
	return errors.Join(err, os.Symlink(target, last))
}

// Shell creates a container like the one of the call, with a terminal for the user instead of
// the agent and without a key. It returns the container's name. The caller starts and removes
// the container.
func (r *Runner) Shell(ctx context.Context, j Job) (string, error) {
	rec := roles.Record{Dir: r.Project.Call(j.Call.ID)}
	cmd := agent.Command{
		Argv: []string{"/bin/bash", "--norc"},
		Env:  map[string]string{"TERM": "xterm-256color", "PS1": j.Role.Name + " \\w $ "},
	}
	deadline := time.Now().Add(12 * time.Hour)
	if err := r.writeFiles(j, rec, cmd, "", deadline); err != nil {
		return "", fmt.Errorf("cannot prepare a shell: %w", err)
	}
	if err := r.prepareNetwork(ctx, j, deadline); err != nil {
		return "", err
	}
	container := r.containerFor(j, rec, cmd, deadline)
	container.Argv, container.Term = cmd.Argv, true
	container.Labels[sandbox.LabelKind] = "shell"
	if err := roles.CheckSources(r.Project, container.Mounts); err != nil {
		return "", err
	}
	rules := boundary.RoleRule(j.Role, r.Project, r.ID, rec.Dir, r.Port != 0)
	if err := rules.Check(container).Err(); err != nil {
		return "", fmt.Errorf("container %q: %w", container.Name, err)
	}
	c := r.Container(container)
	c.Expected = new(rules.Expected(container))
	if err := c.Replace(ctx); err != nil {
		return "", fmt.Errorf("cannot create the %s's container: %w", j.Role.Name, err)
	}
	return container.Name, nil
}

// prepareFiles removes the stale files of the workspace and writes the call's files.
func (r *Runner) prepareFiles(j Job, rec roles.Record, cmd agent.Command, deadline time.Time) error {
	for _, name := range j.Stale {
		if err := hostfs.Remove(j.Role.Workspace(r.Project), name); err != nil {
			return fmt.Errorf("cannot remove the earlier %s: %w", name, err)
		}
	}
	if j.Stale != nil {
		failpoint.Here("failed_specs.gone")
	}
	prompt, projectMap, err := j.Prompt()
	if err == nil && projectMap != "" {
		err = hostfs.Write(r.Project.Map(), []byte(projectMap), 0o644)
	}
	if err != nil {
		return err
	}
	return r.writeFiles(j, rec, cmd, prompt, deadline)
}

// boxFor describes the call's container.
func (r *Runner) containerFor(j Job, rec roles.Record, cmd agent.Command, deadline time.Time) sandbox.ContainerConfig {
	container := r.Worker(j.Call.ID, j.Image, j.Place, r.Labels("role", j.Role.Name, j.Call.ID, deadline))
	container.Labels[sandbox.LabelPhase] = strconv.Itoa(j.Call.Phase)
	container.Env = append(container.Env,
		"ABL_PHASE="+strconv.Itoa(j.Call.Phase),
		"ABL_ITERATION="+strconv.Itoa(j.Call.Iteration),
		"ABL_SPECS="+helper.Specs)
	for _, k := range slices.Sorted(maps.Keys(cmd.Env)) {
		container.Env = append(container.Env, k+"="+cmd.Env[k])
	}
	container.Env = append(container.Env, j.Env...)
	container.Argv, container.Dir = []string{helper.Bin + "/" + helper.HelperRun, helper.Run}, j.Role.Dir
	container.Mounts, container.Tmpfs = roles.Mounts(j.Role, r.Project, rec), r.Spaces.Tmpfs(j.Role)
	return container
}
