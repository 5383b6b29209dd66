package commit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/images"
	"abl/internal/owner"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/orchestrator/dirs"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/sandbox/docker"
)

func imageFlags() []cli.Flag { return ground.ImageFlags() }

// dockerfile is a project's own image for its builds, on top of abl's.
const dockerfile = codecommit.ConfigDir + "/build.Dockerfile"

// box runs build.sh in a container that sees a copy of the project, no key, no
// log, no repository, and no network.
type box struct {
	*session
	engine *docker.Engine
	image  string
	id     string // of the project on the engine
	user   [2]int
	limit  time.Duration
	stream io.Writer
	n      int
}

// boxed makes ready what a build in a container needs.
func (s *session) boxed(ctx context.Context, r *codecommit.Run, limit time.Duration) (done func(), err error) {
	eng, _, err := ground.Connect(ctx)
	if err != nil {
		return nil, err
	}
	want := images.Want{Agent: images.Tools}
	if own := filepath.Join(s.root, dockerfile); s.profile.Name == codecommit.V2 && exists(own) {
		want.Dockerfile = own
	}
	image, err := ground.Maker(eng, s.say, s.in).Ensure(ctx, want)
	if err != nil {
		return nil, errors.Join(exit.With(exit.Environment, fmt.Errorf("cannot make the image for the build: %w", err), ""), eng.Close())
	}
	sum := sha256.Sum256([]byte(s.root))
	b := &box{session: s, engine: eng, image: image, id: "cc" + hex.EncodeToString(sum[:6]), limit: limit}
	b.user[0], b.user[1], _ = owner.RoleID(s.root, os.Geteuid())
	if err := b.sweep(ctx); err != nil {
		return nil, errors.Join(err, eng.Close())
	}
	stream := s.in.Outlet.Writer(s.in.Bare.Stderr, "build | ")
	b.stream = stream
	r.Builder = shown{b, stream}
	s.say("build.sh runs in a container, on a copy of the project and without a network")
	return func() { stream.Close(); eng.Close() }, nil
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// sweep removes what a run that was killed left on the engine.
func (b *box) sweep(ctx context.Context) error {
	_, err := b.engine.Sweep(ctx, map[string]string{sandbox.LabelProject: b.id}, func(sandbox.Status) bool { return false })
	return err
}

// Build runs it once, in a box of its own.
func (b *box) Build(ctx context.Context) (built codecommit.Built, err error) {
	dir, err := os.MkdirTemp("", "code-commit-")
	if err != nil {
		return built, err
	}
	defer os.RemoveAll(dir)
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, b.sweep(tidy))
	}()
	outs := &outputs{stream: b.stream}
	if err := outs.open(dir); err != nil {
		return built, err
	}
	defer outs.close()
	box, err := b.make(ctx, dir)
	if err != nil {
		return built, b.failed(ctx, err)
	}
	began := time.Now()
	code, stopped, err := b.play(ctx, box.Name, outs)
	built.Code, built.Took = code, time.Since(began)
	built.Stdout, built.Stderr = outs.text()
	switch {
	case err != nil:
		return built, b.failed(ctx, err)
	case stopped:
		built.Note = fmt.Sprintf("build.sh was stopped after %s", b.limit)
	case code == notFound:
		return built, fmt.Errorf("%w: exit code 127: the container lacks a program: %s (add it in %s, or build on the host)", codecommit.ErrEnvironment, lastLine(built.Stderr), dockerfile)
	}
	return built, nil
}

// notFound is a shell's code for a program that is not there.
const notFound = 127

// failed marks an engine's error, which no model can repair.
func (b *box) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", codecommit.ErrEnvironment, err)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// make makes the box, compares it with what was meant, and fills it.
func (b *box) make(ctx context.Context, dir string) (sandbox.Box, error) {
	b.n++
	name := "abl-" + b.id + "-build-" + strconv.Itoa(b.n)
	labels := map[string]string{
		sandbox.LabelProject: b.id, sandbox.LabelKind: "helper", sandbox.LabelDeadline: strconv.FormatInt(time.Now().Add(b.limit+time.Minute).Unix(), 10),
	}
	if err := b.engine.EnsureVolume(ctx, sandbox.Volume{Name: name, Labels: labels}); err != nil {
		return sandbox.Box{}, err
	}
	const run = "exec ./" + build.Script + " >" + dirs.Out + " 2>" + dirs.Err + " </dev/null"
	box := sandbox.Box{
		Name: name, Image: b.image, User: fmt.Sprintf("%d:%d", b.user[0], b.user[1]), Dir: "/",
		Argv: []string{"/bin/sh", "-c", "cd " + dirs.Src + " && " + run}, Env: []string{"HOME=" + dirs.Home, "LANG=C.UTF-8"},
		Mounts: []sandbox.Mount{
			{What: sandbox.Scratch, Source: name, Target: filepath.Dir(dirs.Src)},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "stdout"), Target: dirs.Out},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "stderr"), Target: dirs.Err},
		},
		Tmpfs: []sandbox.Tmpfs{
			{Target: "/tmp", Size: 1 << 30, Mode: "1777", Exec: true},
			{Target: dirs.Home, Size: 512 << 20, Mode: "0700", Owned: true, Exec: true},
		},
		Limits: sandbox.Limits{Memory: 4 << 30, CPUs: 2, Pids: 512, FileSize: 4 << 30, OpenFile: 4096},
		Labels: labels,
	}
	if _, err := b.engine.Create(ctx, box); err != nil {
		return box, err
	}
	proof, err := b.engine.Prove(ctx, box)
	if err == nil {
		err = proof.Err()
	}
	if err != nil {
		return box, err
	}
	from, to := io.Pipe()
	go func() { to.CloseWithError(b.copy(to)) }()
	defer from.Close()
	return box, b.engine.CopyIn(ctx, box.Name, filepath.Dir(dirs.Src), from)
}

// play starts the box and waits for its end, or for the end of its time.
func (b *box) play(ctx context.Context, name string, outs *outputs) (code int, stopped bool, err error) {
	if err := b.engine.Start(ctx, name); err != nil {
		return 0, false, err
	}
	stop := outs.follow()
	defer stop()
	limited, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	end, err := b.engine.Wait(limited, name)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		const grace = 5 * time.Second
		return 0, true, b.engine.Stop(ctx, name, grace)
	}
	return end.Code, false, err
}
