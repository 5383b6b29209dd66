package commit

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/orchestrator/codecommit"
	"abl/roles/environment"
)

// shown ends the last line of a build's output before somebody else speaks.
type shown struct {
	codecommit.Builder
	stream io.Closer
}

func (b shown) Build(ctx context.Context) (codecommit.Built, error) {
	built, err := b.Builder.Build(ctx)
	return built, errors.Join(exit.OnEngine(err), b.stream.Close())
}

// builder decides where the build runs.
func (s *session) builder(ctx context.Context, r *codecommit.Run, secrets codecommit.Secrets, limit time.Duration) (done func(), err error) {
	if note, _ := codecommit.Runnable(r.Root); note != "" {
		s.in.Warn("every build will be red: " + note)
	}
	stream := s.in.Safe.Writer(s.in.Bare.Stderr, "build | ")
	host := codecommit.Host{Root: r.Root, Stream: stream, Limit: limit, Secrets: secrets.All}
	if s.in.String("build-on") != "container" {
		s.in.Say("build.sh runs on this machine as you do; --build-on container keeps it in a box")
		r.Builder = shown{host, stream}
		return func() { stream.Close() }, nil
	}
	conf, err := config.Load(r.Root, os.LookupEnv, nil)
	if err != nil {
		return nil, err
	}
	for _, w := range conf.Warnings {
		if !slices.Contains(s.warned, w) {
			s.in.Warn(w)
		}
	}
	box, err := codecommit.OpenBox(ctx, s.project, host, environment.Options{
		Conf: conf, CACert: s.in.String("ca-cert"), Offline: s.in.Bool("offline"), Weak: s.in.Bool(cli.WeakFlag), Safe: s.in.Safe,
		Note: r.Show.Say, NoteImage: r.Show.Say,
	})
	if err != nil {
		return nil, exit.OnEngine(err)
	}
	r.Builder = shown{box, stream}
	return func() {
		stream.Close()
		_ = box.Close(ctx) // it says so itself
	}, nil
}
