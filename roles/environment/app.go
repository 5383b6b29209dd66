package environment

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"abl/images"
	"abl/internal/config"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/roles"
)

// AppSpec is the app section of the settings as a container reads it, nil for none.
func AppSpec(conf *config.Loaded) *helper.App {
	a := conf.App
	if a == nil {
		return nil
	}
	return &helper.App{Command: a.Command, Port: a.Port, Path: a.Ready.Path, TimeoutMS: time.Duration(a.Ready.Timeout).Milliseconds()}
}

// StartTime is the longest that the services and the app may take until they are ready.
func StartTime(conf *config.Loaded) (most time.Duration) {
	if conf.App == nil {
		return 0
	}
	most = time.Duration(conf.App.Ready.Timeout)
	for _, svc := range conf.App.Services {
		most += time.Duration(svc.Ready.Timeout)
	}
	return most
}

// Commands is a declared command table in the order of its names.
func Commands(table map[string]config.Command) (all []helper.Command) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		c := table[name]
		all = append(all, helper.Command{
			Name: name, Description: c.Description, Command: c.Command, Shown: c.Output == "shown",
			Background: c.Background, TimeoutMS: time.Duration(c.Timeout).Milliseconds(),
		})
	}
	return all
}

// App is the system under test of the settings, in the image that is named for it or
// else in builder, the Builder's. The images of its services are pulled when the
// engine lacks them.
func (e *Environment) App(ctx context.Context, builder string, out state.Sink) (*roles.App, error) {
	image := builder
	file, err := Dockerfile(e.Root, e.Conf.Images.App.Dockerfile, e.Project.Src, e.Project.Tests)
	if err != nil {
		return nil, err
	}
	if file != "" {
		if image, err = e.Images.Ensure(ctx, images.Want{Agent: images.Tools, Dockerfile: file}); err != nil {
			return nil, fmt.Errorf("cannot make the app's image: %w", err)
		}
	}
	app := &roles.App{
		Boxes: e.Boxes, Project: e.Project, Image: image, Copy: e.copyMode(), Out: out,
		Tree:    func(w io.Writer, as string) error { return hostfs.Tar(w, as, e.Project.Src, ".git") },
		Silence: 30 * time.Second,
		Life:    time.Duration(e.Conf.Loop.CallTimeout) + StartTime(e.Conf) + 5*time.Minute,
		Spec: helper.BrokerSpec{
			Port: helper.BrokerPort, Dir: path.Join(helper.Src, e.Conf.Source.Dir), App: AppSpec(e.Conf), Commands: Commands(e.Conf.VerifierCommands),
		},
	}
	if e.Conf.App == nil {
		return app, nil
	}
	app.Env = variables(e.Conf.App.Env)
	for _, name := range slices.Sorted(maps.Keys(e.Conf.App.Services)) {
		svc := e.Conf.App.Services[name]
		if err := e.pull(ctx, name, svc.Image); err != nil {
			return nil, err
		}
		app.Services = append(app.Services, roles.ServiceBox{Name: name, Image: svc.Image, Env: variables(svc.Env)})
		app.Spec.Services = append(app.Spec.Services, helper.Service{Name: name, Port: svc.Ready.Port, TimeoutMS: time.Duration(svc.Ready.Timeout).Milliseconds()})
	}
	return app, nil
}

func variables(table map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		all = append(all, name+"="+table[name])
	}
	return all
}

// copyMode is how the app gets its tree: a copy-on-write view where the engine
// runs on this machine and the path has none of the characters that end a
// mount option, else a copy.
func (e *Environment) copyMode() string {
	mode := "auto"
	if e.Conf.App != nil {
		mode = e.Conf.App.Copy
	}
	if mode == "auto" {
		mode = "overlay"
		if !e.Info.Local || strings.ContainsAny(e.Project.Src, `,:\`) {
			mode = "tar"
		}
	}
	return mode
}
