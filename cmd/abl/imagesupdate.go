package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl"
	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/images"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/internal/testing/modelserver"
	"abl/roles/agent"
)

// updateImage builds the image of an agent's newest version, or of the version that is given, and runs the
// first phase of the demo with it, against a model server of abl's. It deletes the image if the phase does
// not pass. The pinned version stays in use until the settings name another one.
func updateImage(ctx context.Context, in *cli.Input) error {
	name, version, ref := in.Args[0], "", ""
	build := onEngine(func(ctx context.Context, in *cli.Input, m *images.Maker) (lines []string, err error) {
		if version = strings.Join(in.Args[1:], ""); version == "" {
			if version, err = m.Newest(ctx, name); err != nil {
				return nil, exit.With(exit.Environment, err, "name the version: abl images update "+name+" VERSION")
			}
			if version == images.Version(name) {
				return []string{fmt.Sprintf("%s %s is the newest version, and the one that this abl is tested with", name,
					version)}, nil
			}
		}
		ref, err = m.Ensure(ctx, images.Want{Agent: name, Version: version})
		return []string{ref}, err
	})
	if err := build(ctx, in); err != nil || ref == "" {
		return err
	}
	switch err := tryAgent(ctx, in, name, version); {
	case err != nil && version == images.Version(name):
		return fmt.Errorf("%s %s did not pass the demo: %w", name, version, err)
	case err != nil:
		remove := onEngine(func(ctx context.Context, _ *cli.Input, m *images.Maker) ([]string, error) {
			return []string{"deleted " + ref}, m.Engine.RemoveImage(ctx, ref)
		})
		return errors.Join(fmt.Errorf("%s %s did not pass the demo, so its image is deleted: %w", name, version, err),
			remove(context.WithoutCancel(ctx), in))
	}
	fmt.Fprintf(in.Stdout, "\n%s %s passed the demo. To use it: agents: {%[1]s: {version: %[2]s}} in .abl/config.yaml\n",
		name, version)
	return nil
}

// tryAgent runs the first phase of the demo with a version of an agent's program.
func tryAgent(ctx context.Context, in *cli.Input, name, version string) error {
	dir, err := writeDemo(nil)
	if err != nil {
		return err
	}
	base, stop, err := serveDemo(dir)
	if err != nil {
		return err
	}
	defer stop()
	a, err := agent.Find(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(a.Provider.API, "openai") {
		base += "/v1"
	}
	const config = ".abl/config.yaml"
	text, err := fs.ReadFile(abl.Demo(), config)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("agent: %s\nagents:\n  %[1]s: {login: key, version: %s}\n", name, version)
	changed := strings.Replace(string(text), "agent: scripted\nagents:\n", settings, 1)
	env := fmt.Sprintf("%s=no-key-is-needed-here\n%s=%s\n", a.Provider.KeyVar, a.Provider.BaseVar, base)
	err = errors.Join(
		hostfs.Write(filepath.Join(dir, config), []byte(changed), 0o644),
		hostfs.Write(filepath.Join(dir, ".env"), []byte(env), 0o600),
		hostfs.ChownToUser(dir, "."),
	)
	if err != nil {
		return err
	}
	in.Say("%s %s plays the demo in %s", name, version, dir)
	s, err := project.OpenAt(in, dir)
	if err != nil {
		return err
	}
	if err := new(runOptions).play(ctx, s, 0); err != nil { // the project has what the agent printed
		return err
	}
	return os.RemoveAll(dir)
}

// serveDemo starts the model server on this machine, with the scenario of the demo in dir.
func serveDemo(dir string) (base string, stop func(), err error) {
	const file = "scenario.yaml"
	data, err := fs.ReadFile(abl.Demo(), file)
	if err != nil {
		return "", nil, err
	}
	script, err := agent.Parse(file, data)
	if err != nil {
		return "", nil, err
	}
	for i := range script.Calls {
		if script.Calls[i], err = script.Calls[i].Resolve(dir); err != nil {
			return "", nil, err
		}
	}
	places := modelserver.Places{
		Workspaces: map[string]string{"builder": helper.Src, "verifier": helper.Tests},
		AppURL:     "http://app:3000",
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("cannot start the model server: %w", err)
	}
	server := &http.Server{Handler: &modelserver.Server{Source: modelserver.Scenario(script, places, time.Now),
		Log: io.Discard}}
	go server.Serve(l) // until stop
	return "http://" + l.Addr().String(), func() { server.Close() }, nil
}

// pruneImages deletes the images that no project of this machine uses.
func pruneImages(ctx context.Context, _ *cli.Input, m *images.Maker) ([]string, error) {
	dir, err := state.UserDir()
	if err != nil {
		return nil, exit.With(exit.Environment, fmt.Errorf("cannot find out which images projects use: %w", err), "set HOME")
	}
	used, err := images.InUse(dir, time.Now())
	if err != nil {
		return nil, exit.With(exit.Environment, err, "delete the file: abl writes it again with the project's next run")
	}
	return m.Prune(ctx, used)
}
