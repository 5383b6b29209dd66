package main

import (
	"context"
	"os"
	"slices"
	"time"

	"abl/cmd/internal/ground"
	"abl/internal/sandbox"
	"abl/orchestrator"
	"abl/roles"

	"golang.org/x/sys/unix"
)

// hire brings the players on the stage and sets up what runs them.
func (st *stage) hire(ctx context.Context) error {
	st.site = &roles.Site{
		Engine: st.engine, ID: st.file.Project, Phase: st.phase, Image: st.have.holder, Pool: st.conf.Network.Pool,
		Egress: st.conf.Network.Egress, Gated: map[string]bool{}, Net: *st.net, Life: st.life(),
	}
	st.forwards = &ground.Forwards{Engine: st.engine, Info: st.info, Site: st.site, Note: st.project.Forwards(), Trusted: st.trusted()}
	st.cast = &orchestrator.Cast{
		Number: st.phase, Project: st.project, Specs: st.specs, App: st.appSpec(),
		Players: map[string]orchestrator.Player{}, Holder: st.site.Holder, Outlet: st.in.Outlet,
		Files: map[string]orchestrator.Files{roles.Builder.Name: files(st.src), roles.Verifier.Name: files(st.tests)},
	}
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := st.player(role)
		if err != nil {
			return err
		}
		if st.keys {
			if err := st.giveGate(ctx, role, &p); err != nil {
				return err
			}
		}
		p.Image = st.have.role[role.Name]
		st.cast.Players[role.Name] = p
	}
	st.runner = &roles.Runner{
		Engine: st.engine, Project: st.project, ID: st.file.Project, UID: st.uid, GID: st.gid, Root: os.Geteuid() == 0, Person: st.person(),
		Box: st.limits(), Output: int64(st.conf.Limits.Output), Timeout: time.Duration(st.conf.Loop.CallTimeout), Out: st.out, Outlet: st.in.Outlet,
		Net: *st.net, Reach: st.site.Reach, Idle: time.Duration(st.conf.Loop.IdleTimeout), Grow: st.growth(), Price: st.price,
	}
	st.app = st.newApp()
	return nil
}

// growth bounds what a call may write, and says where room has to stay.
func (st *stage) growth() roles.Growth {
	disks := []string{st.project.Src, st.project.Tests, st.project.Calls()}
	if st.info.Local && st.info.DataDir != "" {
		disks = append(disks, st.info.DataDir)
	}
	return roles.Growth{Bytes: int64(st.conf.Limits.Disk), Inodes: st.conf.Limits.Inodes, Disks: disks}
}

// life is beyond what a whole round of calls can take: after it what holds the
// phase's networks ends by itself, should nobody have taken it down.
func (st *stage) life() time.Duration {
	const tries = 3 // of each role's call, at most
	call := time.Duration(st.conf.Loop.CallTimeout) + st.startTime() + 10*time.Minute
	return 24*time.Hour + time.Duration(st.conf.Loop.OutageBudget) + time.Duration(2*tries*st.conf.Loop.MaxVerifierIterations)*call
}

// person is whose the project is.
func (s *session) person() [2]int {
	var fi unix.Stat_t
	if err := unix.Stat(s.project.Root, &fi); err != nil {
		return [2]int{os.Getuid(), os.Getgid()}
	}
	return [2]int{int(fi.Uid), int(fi.Gid)}
}

func (st *stage) limits() sandbox.Limits { return ground.Limits(st.conf.Config) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
