package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"abl/cmd/internal/ground"
	"abl/images"
	"abl/internal/sandbox"
	"abl/orchestrator/event"
	"abl/roles"
	"abl/roles/agent"
)

// made are the images a stage stands on.
type made struct {
	holder  string
	gateway string // "" when no role needs one
	app     string
	role    map[string]string
}

// images makes sure that every image the phase needs is on the engine.
func (st *stage) images(ctx context.Context) error {
	m := ground.MakerFor(st.engine, func(line string) {
		st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Text: line})
	}, st.in, st.project.Root, st.conf.Network)
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
	if st.needsGateway() {
		if st.have.gateway, err = m.Gateway(ctx); err != nil {
			return fmt.Errorf("cannot make the gateway's image: %w", err)
		}
	}
	own := map[string]string{roles.Builder.Name: st.conf.Images.Builder.Dockerfile, roles.Verifier.Name: st.conf.Images.Verifier.Dockerfile}
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := st.player(role)
		if err != nil {
			return err
		}
		want := images.Want{Agent: p.Agent.Image()}
		if want.Dockerfile, err = st.dockerfile(own[role.Name]); err != nil {
			return err
		}
		if st.have.role[role.Name], err = m.Ensure(ctx, want); err != nil {
			return fmt.Errorf("cannot make the %s's image: %w", role.Name, err)
		}
	}
	st.have.app = st.have.role[roles.Builder.Name]
	file, err := st.dockerfile(st.conf.Images.App.Dockerfile)
	if err != nil {
		return err
	}
	if file != "" {
		if st.have.app, err = m.Ensure(ctx, images.Want{Agent: "tools", Dockerfile: file}); err != nil {
			return fmt.Errorf("cannot make the app's image: %w", err)
		}
	}
	return nil
}

// needsGateway is whether a role of this phase has a way out.
func (s *session) needsGateway() bool {
	if len(s.conf.Network.Allow) > 0 {
		return true
	}
	return slices.ContainsFunc([]roles.Role{roles.Builder, roles.Verifier}, func(role roles.Role) bool {
		p, err := s.player(role)
		if err != nil {
			return false
		}
		_, served := agent.ProviderOf(p.Agent)
		return served
	})
}

// path is a setting's path in the project; "" and what is absolute stay.
func (s *session) path(rel string) string { return ground.Path(s.project.Root, rel) }

// checkImages looks whether the project's Dockerfiles may be built at all.
func (s *session) checkImages() error {
	own := s.conf.Images
	for _, rel := range []string{own.Builder.Dockerfile, own.Verifier.Dockerfile, own.App.Dockerfile} {
		if _, err := s.dockerfile(rel); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) dockerfile(rel string) (string, error) {
	return ground.Dockerfile(s.project.Root, rel, s.project.Src, s.project.Tests)
}
