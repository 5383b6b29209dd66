package environment

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
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
func StartTime(conf *config.Loaded) time.Duration {
	if conf.App == nil {
		return 0
	}
	return time.Duration(conf.App.Ready.Timeout) + roles.StartTime(Services(conf))
}

// Services are the services of the settings as a container reads them, by their names.
func Services(conf *config.Loaded) (all []helper.Service) {
	if conf.App == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(conf.App.Services)) {
		ready := conf.App.Services[name].Ready
		all = append(all, helper.Service{Name: name, Port: ready.Port, Path: ready.Path, TimeoutMS: time.Duration(ready.Timeout).Milliseconds()})
	}
	return all
}

// AppEnv is the environment of the app.
func AppEnv(conf *config.Loaded) []string {
	if conf.App == nil {
		return nil
	}
	return variables(conf.App.Env)
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
// else in builder, the Builder's.
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
	app.Env, app.Spec.Services = AppEnv(e.Conf), Services(e.Conf)
	for _, svc := range app.Spec.Services {
		box, err := e.Service(ctx, svc)
		if err != nil {
			return nil, err
		}
		app.Services = append(app.Services, box)
	}
	return app, nil
}

// Service is one of the app's. Its image is built, or pulled when the engine lacks it.
func (e *Environment) Service(ctx context.Context, svc helper.Service) (box roles.ServiceBox, err error) {
	set := e.Conf.App.Services[svc.Name]
	box = roles.ServiceBox{Service: svc, Image: set.Image, Env: variables(set.Env)}
	if box.Files, err = e.Conf.Seeds(e.Root, svc.Name); err != nil {
		return box, err
	}
	for to, data := range box.Files {
		if text := string(data); e.Safe.Redact(text) != text {
			return box, &Error{Usage, "use a value made for tests", fmt.Errorf("cannot seed service %q: the file for %s holds a secret of yours", svc.Name, to)}
		}
	}
	if set.Dockerfile == "" {
		return box, e.pull(ctx, svc.Name, set.Image)
	}
	file, err := Dockerfile(e.Root, set.Dockerfile, filepath.Join(e.Root, e.Conf.Directories.Src), filepath.Join(e.Root, e.Conf.Directories.Tests))
	if err == nil {
		box.Image, err = e.Images.Ensure(ctx, images.Want{Agent: images.Tools, Dockerfile: file, Service: true})
	}
	if err != nil {
		err = fmt.Errorf("cannot make the image of service %q: %w", svc.Name, err)
	}
	return box, err
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
