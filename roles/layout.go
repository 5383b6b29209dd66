package roles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles/agent"
)

// layOut writes all that the box will see of the call, and the two empty files
// that take its output.
func (r *Runner) layOut(j Job, rec Record, cmd agent.Command, deadline time.Time) error {
	prompt, err := j.Prompt()
	if err == nil && prompt != "" { // a program that only is started is told nothing
		prompt, err = agent.Prompt(j.Agent, j.Call, prompt)
	}
	if err != nil {
		return err
	}
	spec := helper.RunSpec{Argv: cmd.Argv, Dir: j.Role.Dir, Stdout: helper.Out, Stderr: helper.Err, Deadline: deadline.Unix(), Probe: helper.Probe, LimitMS: j.Limit.Milliseconds()}
	files := map[string][]byte{}
	if prompt != "" {
		files[path.Base(helper.Prompt)], spec.Stdin = []byte(prompt), helper.Prompt
	}
	maps.Copy(files, cmd.Files)
	maps.Copy(files, j.Files)
	j.Cmds.Reports = helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports)
	return errors.Join(layIn(rec, files, map[string]any{"run.json": spec, "commands.json": j.Cmds}), r.layOutput(rec))
}

// pointLast makes the role's last log name this call's output: a hard link, or
// a symbolic one where the file system has no hard links.
func (r *Runner) pointLast(j Job, rec Record) error {
	last := r.Project.LastLog(j.Role.Name)
	if err := os.Remove(last); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(rec.Stdout(), last) == nil {
		return nil
	}
	target, err := filepath.Rel(filepath.Dir(last), rec.Stdout())
	if err != nil {
		return err
	}
	return os.Symlink(target, last)
}

// writeReadable replaces path; whatever the person's umask, the role can read it.
func writeReadable(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}

// Shell makes a box like the one that the call would get, but with a person's
// terminal instead of the agent, and without a key. It is not started; its name
// is returned, and the caller removes it.
func (r *Runner) Shell(ctx context.Context, j Job) (string, error) {
	rec := Record{r.Project.Call(j.Call.ID)}
	cmd := agent.Command{Argv: []string{"/bin/bash", "--norc"}, Env: map[string]string{"TERM": "xterm-256color", "PS1": j.Role.Name + " \\w $ "}}
	deadline := time.Now().Add(12 * time.Hour)
	if err := r.layOut(j, rec, cmd, deadline); err != nil {
		return "", fmt.Errorf("cannot prepare a shell: %w", err)
	}
	if err := r.Holder(ctx, j.Place); err != nil {
		return "", err
	}
	box := r.boxFor(j, rec, cmd, deadline)
	box.Argv, box.Term = cmd.Argv, true
	box.Labels[sandbox.LabelKind] = "shell"
	if err := r.Engine.Remove(ctx, box.Name); err != nil {
		return "", err
	}
	if err := checkSources(r.Project, box.Mounts); err != nil {
		return "", err
	}
	if err := ofRole(j.Role, r.Project, r.ID, rec.Dir).check(box).Err(); err != nil {
		return "", fmt.Errorf("box %q: %w", box.Name, err)
	}
	if err := Make(ctx, r.Engine, box); err != nil {
		return "", fmt.Errorf("cannot make the %s's container: %w", j.Role.Name, err)
	}
	return box.Name, nil
}
