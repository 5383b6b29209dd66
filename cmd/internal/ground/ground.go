// Package ground is what every command that starts containers stands on: the
// engine, the proof of its networks, images, and the gateway beside a call.
package ground

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/config"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
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
	if info.Podman {
		return nil, info, fmt.Errorf("%w: this is Podman %s, which is not supported: by its Docker socket no container can be given abl's list of system calls; use Docker's own engine", sandbox.ErrWeak, info.Version)
	}
	if info.Rootless || info.UserNS {
		return nil, info, fmt.Errorf("%w: it maps user ids (rootless or userns-remap), so files that a role writes would not be yours", sandbox.ErrWeak)
	}
	return eng, info, nil
}

// Limits are those of the boxes that what a model wrote runs in.
func Limits(conf config.Config) sandbox.Limits {
	const files = 4096
	l := conf.Limits
	return sandbox.Limits{Memory: int64(l.Memory), CPUs: l.CPUs, Pids: l.Pids, FileSize: max(int64(l.Output), int64(l.Disk)), OpenFile: files}
}

// Maker makes images on an engine, its progress shown through say.
func Maker(eng *docker.Engine, say func(string), in *cli.Input) *images.Maker {
	return &images.Maker{Engine: eng, Out: say, Env: os.Getenv, CACert: in.String("ca-cert"), Offline: in.Bool("offline")}
}

// MakerFor is Maker with a project's settings.
func MakerFor(eng *docker.Engine, say func(string), in *cli.Input, root string, conf config.Network) *images.Maker {
	m := Maker(eng, say, in)
	m.CACert, m.Host = cmp.Or(m.CACert, Path(root, conf.CACert)), conf.Builds == config.BuildsHost
	return m
}

// Path is a setting's path in the project at root; "" and what is absolute stay.
func Path(root, rel string) string {
	if rel == "" || filepath.IsAbs(rel) {
		return rel
	}
	return filepath.Join(root, rel)
}

// Dockerfile is a setting's path to a Dockerfile whose folder may go to the engine:
// written are the directories that agents write.
func Dockerfile(root, rel string, written ...string) (string, error) {
	file := Path(root, rel)
	if file == "" {
		return "", nil
	}
	if err := images.CheckContext(root, file, written...); err != nil {
		return "", exit.With(exit.Usage, err, "give the Dockerfile, and the few files that it copies, a folder in .abl/images/: toolchains belong into the image, what the project itself needs is installed by a declared command (builder_commands)")
	}
	return file, nil
}

// ImageFlags are the flags of everything that may have to make an image.
func ImageFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "ca-cert", Value: "FILE", Env: "ABL_CA_CERT", Usage: "trust this CA while images are built"},
		{Name: "offline", Env: "ABL_OFFLINE", Usage: "make no image that needs a network: a missing one is an error"},
	}
}

// longestRestart is how long an engine that ran is waited for when it is gone.
const longestRestart = 10 * time.Minute

// BePatient has an engine that was there waited for from now on, no longer than an
// outage may last. A person who stops the run waits no longer.
func BePatient(ctx context.Context, eng *docker.Engine, outage time.Duration, note func(string)) {
	span := min(outage, longestRestart)
	eng.Patient(ctx, span, func(away time.Duration, back bool) {
		text := fmt.Sprintf("the engine does not answer; it is waited for, up to %s", span)
		if back {
			text = fmt.Sprintf("the engine answers again, after %s", away.Round(100*time.Millisecond))
		}
		note(text)
	})
}
