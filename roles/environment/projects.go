package environment

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"abl/internal/sandbox"
)

// OnEngine counts the objects of one project on an engine.
type OnEngine struct {
	ID         string    `json:"project"`
	Dir        string    `json:"dir"`     // HOST:PATH, "" if its objects do not have the label
	Created    time.Time `json:"created"` // of its oldest object
	Containers int       `json:"containers"`
	Running    int       `json:"running"` // of the containers
	Volumes    int       `json:"volumes"`
	Networks   int       `json:"networks"`
	Lost       bool      `json:"lost"` // its state file on this machine is gone or has another id

	state string // label with its state file
	inUse bool   // an object runs, has a recent or no deadline, or another state file
}

// orphan reports whether SweepOrphans may remove the project's objects.
func (p OnEngine) orphan() bool { return p.Lost && !p.inUse }

// Projects lists the projects that have containers, volumes or networks on an engine, the oldest
// first.
func Projects(ctx context.Context, eng Engine) ([]OnEngine, error) {
	objects, err := eng.Objects(ctx, nil)
	if err != nil {
		return nil, err
	}
	return projects(objects, time.Now(), lost), nil
}

// projects counts the objects of each project. Deadlines from by on are recent.
func projects(objects []sandbox.Object, by time.Time, lost func(label, id string) bool) []OnEngine {
	byID := map[string]*OnEngine{}
	for _, o := range objects {
		if !sandbox.Made(o.Name, o.Labels) {
			continue
		}
		id := o.Labels[sandbox.LabelProject]
		p := byID[id]
		if p == nil {
			p = &OnEngine{ID: id, state: o.Labels[sandbox.LabelState]}
			byID[id] = p
		}
		p.add(o, by)
	}
	all := make([]OnEngine, 0, len(byID))
	for id, p := range byID {
		p.Lost = lost(p.state, id)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b OnEngine) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// add counts an object of the project.
func (p *OnEngine) add(o sandbox.Object, by time.Time) {
	switch o.Kind {
	case sandbox.ContainerObject:
		p.Containers++
		if o.Running {
			p.Running++
		}
	case sandbox.VolumeObject:
		p.Volumes++
	case sandbox.NetworkObject:
		p.Networks++
	}
	if p.Created.IsZero() || !o.Created.IsZero() && o.Created.Before(p.Created) {
		p.Created = o.Created
	}
	p.Dir = cmp.Or(p.Dir, o.Labels[sandbox.LabelDir])
	deadline, err := strconv.ParseInt(o.Labels[sandbox.LabelDeadline], 10, 64)
	if err != nil || !time.Unix(deadline, 0).Before(by) || o.Running || o.Labels[sandbox.LabelState] != p.state {
		p.inUse = true
	}
}
