package main

import (
	"io"
	"os"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/orchestrator/dirs"
	"abl/roles"
)

func (s *session) appSpec() *dirs.App {
	a := s.conf.App
	if a == nil {
		return nil
	}
	return &dirs.App{Command: a.Command, Port: a.Port, Path: a.Ready.Path, TimeoutMS: time.Duration(a.Ready.Timeout).Milliseconds()}
}

// startTime is the longest that the services and the app may take until they are ready.
func (s *session) startTime() (most time.Duration) {
	if s.conf.App == nil {
		return 0
	}
	most = time.Duration(s.conf.App.Ready.Timeout)
	for _, svc := range s.conf.App.Services {
		most += time.Duration(svc.Ready.Timeout)
	}
	return most
}

func (st *stage) newApp() *roles.App {
	app := &roles.App{
		Engine: st.engine, Site: st.site, Project: st.project, ID: st.file.Project, Image: st.have.app,
		UID: st.uid, GID: st.gid, Root: os.Geteuid() == 0, Box: st.limits(), Copy: st.copyMode(), Tree: func(w io.Writer, as string) error { return hostfs.Tar(w, as, st.project.Src, ".git") }, Out: st.out, Outlet: st.in.Outlet,
		Silence: 30 * time.Second,
		Life:    time.Duration(st.conf.Loop.CallTimeout) + st.startTime() + 5*time.Minute,
		Spec: dirs.BrokerSpec{
			Port: dirs.BrokerPort, Dir: dirs.Src, App: st.appSpec(), Commands: commands(st.conf.VerifierCommands),
			LogMax: 64 << 20,
		},
	}
	if a := st.conf.App; a != nil {
		for _, name := range sortedKeys(a.Env) {
			app.Env = append(app.Env, name+"="+a.Env[name])
		}
		for _, name := range sortedKeys(a.Services) {
			svc := a.Services[name]
			box := roles.ServiceBox{Name: name, Image: svc.Image}
			for _, k := range sortedKeys(svc.Env) {
				box.Env = append(box.Env, k+"="+svc.Env[k])
			}
			app.Services = append(app.Services, box)
			app.Spec.Services = append(app.Spec.Services, dirs.Service{Name: name, Port: svc.Ready.Port, TimeoutMS: time.Duration(svc.Ready.Timeout).Milliseconds()})
		}
	}
	return app
}

// copyMode is how the app gets its tree: a copy-on-write view where the engine
// runs on this machine and the path has none of the characters that end a
// mount option, else a copy.
func (st *stage) copyMode() string {
	mode := "auto"
	if st.conf.App != nil {
		mode = st.conf.App.Copy
	}
	if mode == "auto" {
		mode = "overlay"
		if !st.info.Local || strings.ContainsAny(st.project.Src, `,:\`) {
			mode = "tar"
		}
	}
	return mode
}
