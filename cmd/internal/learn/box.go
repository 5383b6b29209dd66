package learn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/cmd/internal/ground"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/orchestrator"
	"abl/orchestrator/dirs"
	"abl/orchestrator/learner"
	"abl/orchestrator/project"
	"abl/roles"
	"abl/roles/agent"
)

// maxOutput bounds what an agent's output and a program's are read of, in bytes.
const (
	maxOutput  = 64 << 20
	maxPrinted = 16 << 10
)

// Ask implements learner.Asker: one call in one container, which sees the cycle's
// folder and nothing else, and can change it only where a program is written.
func (b *bench) Ask(ctx context.Context, a learner.Ask) (learner.Answer, error) {
	role := roles.Role{Name: string(a.Step), Verb: string(a.Step), Dir: dirs.Src, TmpExec: true, Alone: true, Sealed: a.Step != learner.Generate}
	model, err := agent.FullName(b.agent, a.Model) // the gateway lets through what was named and no other
	if err != nil {
		return learner.Answer{}, err
	}
	gate, err := b.gate(a.Step, model)
	if err != nil {
		return learner.Answer{}, err
	}
	p := b.at(a.Dir)
	rec := roles.Record{Dir: p.Call(a.Key)}
	if _, ended, err := rec.Outcome(); err != nil {
		return learner.Answer{}, err
	} else if !ended && !rec.Started() {
		if err := b.admit(a.Key); err != nil {
			return learner.Answer{}, err
		}
		if err := a.Begin(); err != nil {
			return learner.Answer{}, err
		}
	}
	join, err := b.site.Holder(ctx, roles.PlaceBuilder)
	if err != nil {
		return learner.Answer{}, err
	}
	job := roles.Job{
		Role: role, Agent: b.agent, Image: b.image, Join: join, Gate: gate,
		Call: agent.Call{
			ID: a.Key, Role: role.Name, Phase: a.Session, Iteration: a.Cycle, Step: a.Cycle, Attempt: a.Attempt,
			Model: model, Session: newUUID(), Prompt: dirs.Prompt, Dir: role.Dir, Alone: true,
		},
		Prompt: func() (string, error) { return a.Prompt, nil },
	}
	if a.Step == learner.Generate {
		job.Files = b.way.files
	}
	o, err := b.run(ctx, p, a.Dir, job, a.Limit, int64(b.conf.Limits.Output))
	if err != nil {
		return learner.Answer{}, err
	}
	answer := learner.Answer{Class: o.Class, Reason: o.Reason, Back: o.Evidence.Back, Paid: o.Evidence.Paid, SpentMS: o.Duration}
	if o.Class == roles.Timeout {
		answer.Reason = fmt.Sprintf("it did not end within %s, retries included", learner.CallTime)
	}
	answer.Text, err = said(rec, b.agent, job.Call)
	if o.Class == roles.Nothing && o.Exit == 0 && strings.TrimSpace(answer.Text) != "" { // not every question needs a tool
		o.Class, answer.Class, answer.Reason = roles.Done, roles.Done, ""
	}
	return answer, errors.Join(err, b.book.Append(orchestrator.Rows(a.Session, a.Cycle, o)))
}

// said are the agent's last words, out of what is kept of its output.
func said(rec roles.Record, a agent.Agent, call agent.Call) (string, error) {
	f, err := hostfs.Open(rec.Dir, filepath.Base(rec.Stdout()))
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOutput))
	if err != nil {
		return "", err
	}
	r := a.NewReader(call)
	agent.Feed(r, data)
	if s, ok := r.(agent.Speaker); ok {
		return s.Said(), nil
	}
	return "", nil
}

// at is the project with a cycle as its workspace.
func (b *bench) at(dir string) project.Project {
	p := b.project
	p.Src = dir
	return p
}

// run takes one container to its end, with the cycle's folder lent to whom it
// runs as, and back afterwards.
func (b *bench) run(ctx context.Context, p project.Project, dir string, job roles.Job, limit time.Duration, output int64) (roles.Outcome, error) {
	lease, err := b.lend(dir)
	if err != nil {
		return roles.Outcome{}, err
	}
	place := roles.PlaceBuilder
	if job.Gate == nil && job.Limit > 0 {
		place = roles.PlaceApp
	}
	r := &roles.Runner{
		Engine: b.engine, Project: p, ID: b.id, UID: b.uid, GID: b.gid, Root: os.Geteuid() == 0, Person: [2]int{lease.OwnerUID, lease.OwnerGID},
		Box: ground.Limits(b.conf.Config), Net: b.net, Reach: func(string) sandbox.Reach { return b.site.Reach(place) }, Output: output, Timeout: limit,
		Grow: b.growth(p, job), Out: b.actions(), Outlet: b.in.Outlet,
	}
	if job.Limit == 0 { // a program may be silent as long as it likes
		r.Idle = time.Duration(b.conf.Loop.IdleTimeout)
	}
	o, err := r.Run(ctx, job)
	found, rerr := hostfs.Return(dir, lease)
	for _, what := range found {
		b.tell.Note(filepath.Base(dir) + ": " + what)
	}
	if err == nil {
		err = rerr
	}
	return o, err
}

// lend gives the cycle's folder to the containers' user when abl is root; it is
// the project's owner's before and afterwards.
func (b *bench) lend(dir string) (hostfs.Lease, error) {
	lease, err := hostfs.Plan(b.project.Root, b.uid, b.gid)
	if err != nil {
		return lease, err
	}
	const mode = 0o755
	lease.Mode = mode
	if os.Geteuid() != 0 {
		return lease, os.Chmod(dir, mode)
	}
	return lease, hostfs.Lend(dir, lease)
}

func (b *bench) growth(p project.Project, job roles.Job) roles.Growth {
	if job.Role.Sealed {
		return roles.Growth{}
	}
	return roles.Growth{Bytes: int64(b.conf.Limits.Disk), Inodes: b.conf.Limits.Inodes, Disks: []string{p.Src}}
}

// newUUID is a random UUID (RFC 9562, version 4).
func newUUID() string {
	u := make([]byte, 16)
	rand.Read(u) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
