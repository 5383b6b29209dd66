package roles

import (
	"context"
	"fmt"
	"time"

	"abl/internal/sandbox"
	"abl/roles/agent"
)

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
