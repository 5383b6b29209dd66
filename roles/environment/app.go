package environment

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"abl/images"
	"abl/internal/config"
	"abl/internal/helper"
	"abl/internal/state"
	"abl/roles/app"
	"abl/roles/boundary"
)

// AppSpec returns the app section of the settings in the form for containers, nil without one.
func AppSpec(conf *config.Loaded) *helper.App {
	a := conf.App
	if a == nil {
		return nil
	}
	app := &helper.App{
		Command:   a.Command,
		Prepare:   a.Prepare,
		Build:     a.Build,
		Port:      a.Port,
		Path:      a.Ready.Path,
		TimeoutMS: time.Duration(a.Ready.Timeout).Milliseconds(),
		Env:       variables(a.Env),
	}
	if a.Kind != "http" {
		app.Kind = a.Kind
	}
	if app.IsProgram() {
		app.TimeoutMS = runTime.Milliseconds()
	}
	return app
}

// runTime is the time limit of one run of a program. Tests can end abl-cmd app earlier.
const runTime = 5 * time.Minute

// AppPort returns the port by which tests reach the app: its own, or that of the broker for a
// program. It returns 0 without an app section.
func AppPort(conf *config.Loaded) int {
	switch app := AppSpec(conf); {
	case app == nil:
		return 0
	case app.IsProgram():
		return helper.BrokerPort
	default:
		return app.Port
	}
}

// StartTime returns how long the services and the app may take until they are ready.
func StartTime(conf *config.Loaded) time.Duration {
	if conf.App == nil {
		return 0
	}
	return time.Duration(conf.App.Ready.Timeout) + boundary.StartTime(Services(conf))
}

// Services returns the services of the settings by name, without their built images and files.
func Services(conf *config.Loaded) (all []boundary.ServiceContainer) {
	if conf.App == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(conf.App.Services)) {
		set := conf.App.Services[name]
		wait := time.Duration(set.Ready.Timeout).Milliseconds()
		svc := helper.Service{Name: name, Port: set.Ready.Port, Path: set.Ready.Path, TimeoutMS: wait}
		all = append(all, boundary.ServiceContainer{Service: svc, Image: set.Image, Env: variables(set.Env)})
	}
	return all
}

// Commands returns the declared commands in the order of their names.
func Commands(table map[string]config.Command) (all []helper.Command) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		c := table[name]
		all = append(all, helper.Command{
			Name:        name,
			Description: c.Description,
			Command:     c.Command,
			Shown:       c.Output == "shown",
			Background:  c.Background,
			TimeoutMS:   time.Duration(c.Timeout).Milliseconds(),
		})
	}
	return all
}

// App returns the system under test. It runs in the image of images.app, or else in builder, the
// Builder's image.
func (e *Environment) App(ctx context.Context, builder string, out state.Sink) (*app.App, error) {
	image := builder
	if own := e.Conf.Images.App.Dockerfile; own != "" {
		var err error
		if image, err = e.build(ctx, own, images.Want{Agent: images.Tools, Toolchain: e.Conf.Toolchain}); err != nil {
			return nil, fmt.Errorf("cannot build the app's image: %w", err)
		}
	}
	system := &app.App{
		Containers: e.Containers,
		Project:    e.Project,
		Image:      image,
		Copy:       e.copyMode(),
		Out:        out,
		Silence:    30 * time.Second,
		Life:       time.Duration(e.Conf.Loop.CallTimeout) + StartTime(e.Conf) + 5*time.Minute,
		Spec: helper.BrokerSpec{
			Port:     helper.BrokerPort,
			Dir:      path.Join(helper.Src, e.Conf.Source.Dir),
			App:      AppSpec(e.Conf),
			Commands: Commands(e.Conf.VerifierCommands),
		},
	}
	if e.Conf.App != nil {
		system.Env = system.Spec.App.Env
	}
	system.Services = Services(e.Conf)
	for i := range system.Services {
		if err := e.Have(ctx, &system.Services[i]); err != nil {
			return nil, err
		}
		system.Spec.Services = append(system.Spec.Services, system.Services[i].Service)
	}
	return system, nil
}

// Have builds or pulls a service's image unless the engine has it, and reads the service's files.
func (e *Environment) Have(ctx context.Context, svc *boundary.ServiceContainer) (err error) {
	if svc.Files, err = e.Conf.Seeds(e.Root, svc.Name); err != nil {
		return err
	}
	for to, data := range svc.Files {
		if text := string(data); e.Safe.Redact(text) != text {
			err := fmt.Errorf("cannot seed service %q: the file for %s contains one of your secrets", svc.Name, to)
			return &Error{Usage, "use a test value", err}
		}
	}
	if svc.Image != "" {
		return e.pull(ctx, svc.Name, svc.Image)
	}
	svc.Image, err = e.build(ctx, e.Conf.App.Services[svc.Name].Dockerfile,
		images.Want{Agent: images.Tools, Service: true})
	if err != nil {
		err = fmt.Errorf("cannot build the image of service %q: %w", svc.Name, err)
	}
	return err
}

// build builds an image from a Dockerfile of the project.
func (e *Environment) build(ctx context.Context, dockerfile string, want images.Want) (image string, err error) {
	if want.Dockerfile, err = Dockerfile(e.Root, dockerfile, e.Project.Src, e.Project.Tests); err != nil {
		return "", err
	}
	return e.Images.Ensure(ctx, want)
}

// Prepare returns app.prepare for a source, nil without such a setting.
func (e *Environment) Prepare(ctx context.Context, src app.Source) (*app.Prepare, error) {
	if e.Conf.App == nil || e.Conf.App.Prepare == "" {
		return nil, nil
	}
	p := &app.Prepare{Source: src, Limit: time.Duration(e.Conf.Loop.CallTimeout)}
	g, err := e.Gate(ctx, Access{Place: boundary.PlaceBuilder, Fetch: true})
	if g != nil {
		p.Gate, p.Files = g, g.Files
	}
	return p, err
}

// Build returns app.build, nil without such a setting. The command has no network.
func (e *Environment) Build() *app.Prepare {
	if e.Conf.App == nil || e.Conf.App.Build == "" {
		return nil
	}
	return &app.Prepare{
		Setting: "app.build",
		Limit:   time.Duration(e.Conf.Loop.CallTimeout),
	}
}

func variables(table map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		all = append(all, name+"="+table[name])
	}
	return all
}

// copyMode returns how the app gets its source. overlay is a copy-on-write view: it needs an engine
// on this machine and a path without the separators of mount options. tar is a copy.
func (e *Environment) copyMode() string {
	mode := "auto"
	if e.Conf.App != nil {
		mode = e.Conf.App.Copy
	}
	if mode == "auto" {
		mode = "overlay"
		if !e.Info.Local || strings.ContainsAny(e.Project.Root, `,:\`) {
			mode = "tar"
		}
	}
	return mode
}
