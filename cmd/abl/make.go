package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/images"
	"abl/orchestrator/event"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/sandbox/docker"
	"abl/roles"
)

// made are the images a stage stands on.
type made struct {
	holder string
	app    string
	role   map[string]string
}

// maker makes images on an engine, its progress shown through say.
func maker(eng *docker.Engine, say func(string), in *cli.Input) *images.Maker {
	return &images.Maker{Engine: eng, Out: say, Env: os.Getenv, CACert: in.String("ca-cert"), Offline: in.Bool("offline")}
}

// imageFlags are the flags of everything that may have to make an image.
func imageFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "ca-cert", Value: "FILE", Env: "ABL_CA_CERT", Usage: "trust this CA while images are built"},
		{Name: "offline", Env: "ABL_OFFLINE", Usage: "make no image that needs a network: a missing one is an error"},
	}
}

// images makes sure that every image the phase needs is on the engine.
func (st *stage) images(ctx context.Context) error {
	m := maker(st.engine, func(line string) {
		st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Text: line})
	}, st.in)
	if err := st.ensureImages(ctx, m); err != nil {
		return err
	}
	return st.pullServices(ctx, m)
}

// pullServices takes the images of the app's services that the engine lacks
// from their registry.
func (st *stage) pullServices(ctx context.Context, m *images.Maker) error {
	if st.conf.App == nil {
		return nil
	}
	for _, name := range sortedKeys(st.conf.App.Services) {
		ref := st.conf.App.Services[name].Image
		if _, there, err := st.engine.ImageID(ctx, ref); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		if m.Offline {
			return fmt.Errorf("%w: %s of service %q, and abl is offline: run docker pull %s once with a network", sandbox.ErrNoImage, ref, name, ref)
		}
		m.Out(fmt.Sprintf("service %s: pulling %s", name, ref))
		if _, err := st.engine.Pull(ctx, ref, nil); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: service %q: %w; try docker pull %s", sandbox.ErrNoImage, name, err, ref)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) ensureImages(ctx context.Context, m *images.Maker) (err error) {
	st.have.role = map[string]string{}
	if st.have.holder, err = m.Holder(ctx); err != nil {
		return err
	}
	own := map[string]string{roles.Builder.Name: st.conf.Images.Builder.Dockerfile, roles.Verifier.Name: st.conf.Images.Verifier.Dockerfile}
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := st.player(role)
		if err != nil {
			return err
		}
		want := images.Want{Agent: p.Agent.Image(), Dockerfile: st.path(own[role.Name])}
		if st.have.role[role.Name], err = m.Ensure(ctx, want); err != nil {
			return fmt.Errorf("cannot make the %s's image: %w", role.Name, err)
		}
	}
	st.have.app = st.have.role[roles.Builder.Name]
	if file := st.conf.Images.App.Dockerfile; file != "" {
		if st.have.app, err = m.Ensure(ctx, images.Want{Agent: "tools", Dockerfile: st.path(file)}); err != nil {
			return fmt.Errorf("cannot make the app's image: %w", err)
		}
	}
	return nil
}

// path is a setting's path in the project; "" stays "".
func (s *session) path(rel string) string {
	if rel == "" {
		return ""
	}
	return filepath.Join(s.project.Root, rel)
}
