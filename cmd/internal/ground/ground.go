// Package ground is what every command that starts containers stands on: the
// engine, the proof of its networks, images, and the gateway beside a call.
package ground

import (
	"context"
	"fmt"
	"os"

	"abl/cmd/internal/cli"
	"abl/images"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/sandbox/docker"
)

// Connect reaches the engine and refuses one that cannot keep the boundary.
func Connect(ctx context.Context) (*docker.Engine, sandbox.Info, error) {
	eng, err := docker.Connect(ctx, docker.Options{})
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	info, err := eng.Info(ctx)
	if err != nil {
		return nil, info, err
	}
	if info.Rootless || info.UserNS {
		return nil, info, fmt.Errorf("%w: it maps user ids (rootless or userns-remap), so files that a role writes would not be yours", sandbox.ErrWeak)
	}
	return eng, info, nil
}

// Maker makes images on an engine, its progress shown through say.
func Maker(eng *docker.Engine, say func(string), in *cli.Input) *images.Maker {
	return &images.Maker{Engine: eng, Out: say, Env: os.Getenv, CACert: in.String("ca-cert"), Offline: in.Bool("offline")}
}

// ImageFlags are the flags of everything that may have to make an image.
func ImageFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "ca-cert", Value: "FILE", Env: "ABL_CA_CERT", Usage: "trust this CA while images are built"},
		{Name: "offline", Env: "ABL_OFFLINE", Usage: "make no image that needs a network: a missing one is an error"},
	}
}
