package main

import (
	"context"
	"os"
	"slices"
	"time"

	"abl/orchestrator"
	"abl/orchestrator/sandbox"
	"abl/roles"

	"golang.org/x/sys/unix"
)

// hire brings the players on the stage and sets up what runs them.
func (st *stage) hire(ctx context.Context) error {
	st.site = &roles.Site{
		Engine: st.engine, ID: st.file.Project, Phase: st.phase, Image: st.have.holder, Pool: st.conf.Network.Pool,
		Egress: st.conf.Network.Egress, Direct: map[string]bool{},
	}
	st.cast = &orchestrator.Cast{
		Number: st.phase, Project: st.project, Specs: st.specs, App: st.appSpec(),
		Players: map[string]orchestrator.Player{}, Holder: st.site.Holder,
		Files: map[string]orchestrator.Files{roles.Builder.Name: files(st.src), roles.Verifier.Name: files(st.tests)},
	}
	for _, role := range []roles.Role{roles.Builder, roles.Verifier} {
		p, err := st.player(role)
		if err != nil {
			return err
		}
		if st.keys {
			if err := st.giveKey(&p); err != nil {
				return err
			}
		}
		p.Image = st.have.role[role.Name]
		st.site.Direct[role.Name] = p.Direct
		st.cast.Players[role.Name] = p
	}
	st.runner = &roles.Runner{
		Engine: st.engine, Project: st.project, ID: st.file.Project, UID: st.uid, GID: st.gid, Root: os.Geteuid() == 0, Person: st.person(),
		Box: st.limits(), Output: int64(st.conf.Limits.Output), Timeout: time.Duration(st.conf.Loop.CallTimeout), Out: st.out,
	}
	st.app = st.newApp()
	return nil
}

// person is whose the project is.
func (s *session) person() [2]int {
	var fi unix.Stat_t
	if err := unix.Stat(s.project.Root, &fi); err != nil {
		return [2]int{os.Getuid(), os.Getgid()}
	}
	return [2]int{int(fi.Uid), int(fi.Gid)}
}

func (st *stage) limits() sandbox.Limits {
	l := st.conf.Limits
	return sandbox.Limits{Memory: int64(l.Memory), CPUs: l.CPUs, Pids: l.Pids, FileSize: max(int64(l.Output), int64(l.Disk)), OpenFile: 4096}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
