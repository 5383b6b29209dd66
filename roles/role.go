// Package roles plays the two roles of a phase: it lays out what each may see,
// runs an agent as one call in one box, follows it to its end, and keeps the
// call's record. It runs the app, replays and builds in boxes of the same kind. Every
// step is idempotent under the call's key. What a phase does next is not decided here,
// and no one engine is known.
package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles/agent"
)

// Role is builder or verifier, as data.
type Role struct {
	Name    string // builder or verifier
	Verb    string // build or verify, as commit subjects have it
	Dir     string // workspace inside the box
	Reports string // directory of run reports below the workspace
	TmpExec bool   // programs may be run from /tmp (build tools do)
	App     bool   // the app runs beside it, and runs the declared commands for it
	Fetches bool   // its tools may reach what network.allow lists
	// It sees its workspace and what is handed to its call, and nothing else of the project.
	Alone  bool
	Sealed bool   // its workspace is read-only
	Within string // folder of the workspace that it begins in, "" for the whole
	Tmp    int64  // bytes of /tmp, 0 for half a gigabyte
}

// The two roles. There is no third one: only the Builder touches code.
var (
	Builder  = Role{Name: "builder", Verb: "build", Dir: helper.Src, Reports: "builder_reports", TmpExec: true, Fetches: true}
	Verifier = Role{Name: "verifier", Verb: "verify", Dir: helper.Tests, Reports: "verifier_reports", App: true}
)

// Both are the two, in the order in which they work.
func Both() []Role { return []Role{Builder, Verifier} }

// Workspace is the role's directory on the person's side.
func (r Role) Workspace(p state.Project) string {
	if r.Dir == helper.Tests {
		return p.Tests
	}
	return p.Src
}

// Key is the idempotency key of a call: what is done twice under it is done once.
func Key(phase int, r Role, step, attempt int) string {
	return fmt.Sprintf("p%d-%s-%d.%d", phase, r.Verb, step, attempt)
}

// KeyParts are what a key is made of.
type KeyParts struct {
	Role                 Role
	Phase, Step, Attempt int
}

// ParseKey is the reverse of Key.
func ParseKey(key string) (k KeyParts, ok bool) {
	for _, k.Role = range Both() {
		_, err := fmt.Sscanf(key, "p%d-"+k.Role.Verb+"-%d.%d", &k.Phase, &k.Step, &k.Attempt)
		if err == nil && key == Key(k.Phase, k.Role, k.Step, k.Attempt) {
			return k, true
		}
	}
	return KeyParts{}, false
}

// Subject is the commit subject of a step (seed 003). A further attempt at a call is
// told by its number, so that no two commits are called the same.
func Subject(phase int, r Role, step, attempt int) string {
	subject := fmt.Sprintf("phase%d/%s/step-%d", phase, r.Verb, step)
	if attempt > 1 {
		subject += fmt.Sprintf(".%d", attempt)
	}
	return subject
}

// Mounts lists all that a role sees: its own workspace with its history
// read-only over it, the specs, what abl hands to this call, and the two files
// that take its output.
func Mounts(r Role, p state.Project, rec Record) []sandbox.Mount {
	work := r.Workspace(p)
	mounts := []sandbox.Mount{{What: sandbox.Workspace, Source: work, Target: r.Dir, ReadOnly: r.Sealed}}
	if !r.Alone {
		mounts = append(mounts,
			sandbox.Mount{What: sandbox.GitDir, Source: work + "/.git", Target: r.Dir + "/.git", ReadOnly: true},
			sandbox.Mount{What: sandbox.Specs, Source: p.Specs(), Target: helper.Specs, ReadOnly: true})
	}
	return append(mounts, outputMounts(rec)...)
}

// unseen are paths where a role must find nothing, whatever they are called on
// this machine or inside.
func unseen(r Role, p state.Project) []string {
	top := path.Dir(helper.Src)
	all := []string{top + "/.git", top + "/.env", top + "/" + state.Dir, filepath.Join(p.Root, state.Dir), p.Env()}
	switch {
	case r.Alone:
		return append(all, helper.Specs, helper.Tests)
	case r.Dir == helper.Tests:
		return append(all, p.State(), p.Ledger(), helper.Src, p.Src)
	}
	return append(all, p.State(), p.Ledger(), helper.Tests, p.Tests)
}

// Spaces are how many bytes fit into the places of a box that are in memory, 0 for the default.
type Spaces struct {
	Tmp     int64 // /tmp
	Home    int64
	Shm     int64 // /dev/shm
	Prepare int64 // /tmp and the home of app.prepare and builds, each
}

// tmpfs is the memory a role may write besides its workspace.
func (s Spaces) tmpfs(r Role) []sandbox.Tmpfs {
	tmp, home := max(r.Tmp, cmp.Or(s.Tmp, 512<<20)), cmp.Or(s.Home, 256<<20)
	return []sandbox.Tmpfs{
		{Target: "/tmp", Size: tmp, Inodes: inodes(tmp, 50_000), Mode: "1777", Exec: r.TmpExec},
		{Target: helper.Home, Size: home, Inodes: inodes(home, 20_000), Mode: "0700", Owned: true, Exec: true},
	}
}

// inodes is how many files fit into a place, at least so many.
func inodes(size, least int64) int64 {
	const perFile = 10 << 10 // bytes
	return max(least, size/perFile)
}

// ofPrepare is the memory that app.prepare or a build may write. Package managers keep their caches in
// the home.
func (s Spaces) ofPrepare() []sandbox.Tmpfs {
	size := cmp.Or(s.Prepare, 1<<30)
	return []sandbox.Tmpfs{
		{Target: "/tmp", Size: size, Mode: "1777", Exec: true},
		{Target: helper.Home, Size: size, Mode: "0700", Owned: true, Exec: true},
	}
}

// LastStep is the highest step of a phase that has a record, 0 when there is
// none. A state that begins anew goes on after it: the names of calls, their
// rows in the ledger and their commits are taken.
func LastStep(p state.Project, phase int) (int, error) {
	names, err := readNames(p.Calls())
	if err != nil {
		return 0, fmt.Errorf("cannot list the calls: %w", err)
	}
	last := 0
	for _, name := range names {
		if k, ok := ParseKey(name); ok && k.Phase == phase {
			last = max(last, k.Step)
		}
	}
	return last, nil
}

// readNames lists a folder of records, sorted; one that is not there is empty.
func readNames(dir string) (names []string, err error) {
	const most = 1_000_000
	names, err = hostfs.Names(dir, ".", most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	return names, err
}

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
	spec := helper.RunSpec{Argv: cmd.Argv, Dir: path.Join(j.Role.Dir, j.Role.Within), Stdout: helper.Out, Stderr: helper.Err, Deadline: deadline.Unix(), Probe: helper.Probe, LimitMS: j.Limit.Milliseconds()}
	files := map[string][]byte{}
	if prompt != "" {
		files[path.Base(helper.Prompt)], spec.Stdin = []byte(prompt), helper.Prompt
	}
	maps.Copy(files, cmd.Files)
	maps.Copy(files, j.Files)
	j.Cmds.Reports = helper.ReportsIn(j.Role.Workspace(r.Project), j.Role.Reports)
	return errors.Join(layIn(rec, files, map[string]any{"run.json": spec, "commands.json": j.Cmds}), r.layOutput(rec))
}

// pointLast makes the role's last log name this call's output.
func (r *Runner) pointLast(j Job, rec Record) error {
	last := r.Project.LastLog(j.Role.Name)
	if err := os.Remove(last); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(last), rec.Stdout())
	return errors.Join(err, os.Symlink(target, last))
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
	if err := r.surround(ctx, j, deadline); err != nil {
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
	if err := ofRole(j.Role, r.Project, r.ID, rec.Dir, r.Port != 0).check(box).Err(); err != nil {
		return "", fmt.Errorf("box %q: %w", box.Name, err)
	}
	if err := Make(ctx, r.Engine, box); err != nil {
		return "", fmt.Errorf("cannot make the %s's container: %w", j.Role.Name, err)
	}
	return box.Name, nil
}
