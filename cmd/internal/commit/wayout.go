package commit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/cmd/internal/ground"
	"abl/internal/cacerts"
	"abl/internal/sandbox"
	"abl/orchestrator/gateway"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/registry"
)

// open opens the way out, when the person lists hosts for it, and says where the
// build runs.
func (y *yard) open(ctx context.Context) (err error) {
	y.builds.Site = &roles.Site{
		Engine: y.engine, ID: engineID(y.root), Image: y.holder, Pool: y.conf.Network.Pool, Egress: y.conf.Network.Egress,
		Gated: map[string]bool{roles.PlaceBuilder: true}, Life: 24 * time.Hour,
	}
	y.builds.Net.Away = !y.info.Local
	if len(y.conf.Network.Allow) == 0 {
		y.say("build.sh runs in a container, on a copy of the project and without a network")
		return nil
	}
	if y.builds.Net, err = ground.Networks(ctx, y.in, y.engine, y.info, y.conf.Network.Pool); err != nil {
		return err
	}
	if weak := y.builds.Net.Weak; weak != "" {
		y.in.Warn("weak network, as --" + ground.WeakFlag + " allows: " + weak)
	}
	y.builds.Site.Net = y.builds.Net
	gate := &ground.Gate{
		Engine: y.engine, Project: y.builds.Project, Site: y.builds.Site, Place: roles.PlaceBuilder, Role: "build",
		Vars: agent.Provider{}, Budget: func(string) (gateway.Budget, error) { return gateway.Budget{}, nil }, Outlet: y.in.Outlet,
	}
	if gate.Image, err = y.maker.Gateway(ctx); err != nil {
		return fmt.Errorf("cannot make the gateway's image: %w", err)
	}
	return y.allow(ctx, gate)
}

// allow lets the build's tools through to the hosts of network.allow.
func (y *yard) allow(ctx context.Context, gate *ground.Gate) (err error) {
	b := y.builds
	asker := registry.Asker{
		Engine: y.engine, Image: b.Image, User: fmt.Sprintf("%d:%d", b.UID, b.GID),
		Name:   func(tool string) string { return roles.BoxName(b.ID, "ask-"+tool) },
		Labels: map[string]string{sandbox.LabelProject: b.ID, sandbox.LabelKind: "helper", sandbox.LabelRole: gate.Role},
	}
	if err := gate.Trust(y.trusted()); err != nil {
		return err
	}
	egress, files, err := gate.Fetch(ctx, asker, y.conf.Network.Allow, y.trusted())
	if err != nil {
		return err
	}
	for _, note := range egress.Notes {
		y.say(note)
	}
	b.Gate, b.Files = gate, files
	y.say("build.sh runs in a container, on a copy of the project; it reaches " + strings.Join(egress.Hosts, ", ") + " and nothing else")
	return nil
}

// trusted is whom this machine, and this person, trust.
func (y *yard) trusted() cacerts.Finder {
	return cacerts.Finder{Env: os.Getenv, Extra: cmp.Or(y.in.String("ca-cert"), y.path(y.conf.Network.CACert))}
}

// path is a setting's path, which begins in the project.
func (y *yard) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(y.root, name)
}
