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

	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/strictyaml"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/orchestrator/project"
	"abl/roles"
)

// dockerfile is a project's own image for its builds, on top of abl's. All of its
// folder goes to the engine, so it has one of its own, without keys.
const dockerfile = codecommit.ConfigDir + "/build/Dockerfile"

// box runs build.sh in a container that sees a copy of the project, no key, no
// log and no repository, and reaches the hosts of network.allow or nothing.
type box struct {
	*session
	builds *roles.Builds
	limit  time.Duration
	stream io.Writer
	n      int
}

// boxed makes ready what a build in a container needs.
func (s *session) boxed(ctx context.Context, r *codecommit.Run, limit time.Duration) (done func(), err error) {
	y, err := s.openYard(ctx, limit)
	if err != nil {
		return nil, settle(err)
	}
	stream := s.in.Outlet.Writer(s.in.Bare.Stderr, "build | ")
	r.Builder = shown{&box{session: s, builds: y.builds, limit: limit, stream: stream}, stream}
	return func() {
		stream.Close()
		if err := y.close(ctx); err != nil {
			s.in.Warn(fmt.Sprintf("cannot tidy up (the next run will): %v", err))
		}
	}, nil
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// engineID is the project's name on the engine.
func engineID(root string) string {
	sum := sha256.Sum256([]byte(root))
	return "cc" + hex.EncodeToString(sum[:6])
}

// handed is the folder in which builds have what is handed to them. It is in the
// project, where an engine finds it.
func (s *session) handed() project.Project {
	return project.New(filepath.Join(s.root, s.profile.Yard), "src", "tests")
}

// Build runs it once, in a box of its own.
func (b *box) Build(ctx context.Context) (built codecommit.Built, err error) {
	if note, code := build.Runnable(b.root); note != "" {
		return codecommit.Built{Code: code, Note: note}, nil
	}
	b.n++
	key := "build-" + strconv.Itoa(b.n)
	out, voice := &build.Capped{To: b.stream}, &build.Capped{To: b.stream}
	began := time.Now()
	cleanOut, cleanVoice := b.cleaning(out), b.cleaning(voice)
	end, err := b.builds.Run(ctx, roles.Build{Key: key, Limit: b.limit, Stdout: cleanOut, Stderr: cleanVoice})
	err = errors.Join(err, cleanOut.Close(), cleanVoice.Close())
	built = codecommit.Built{Code: end.Exit, Signal: end.Signal, Stdout: out.String(), Stderr: voice.String(), Took: time.Since(began), Notes: end.Notes}
	papers, perr := b.papers(key)
	built.Papers = papers
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return built, context.Cause(ctx)
	case err != nil || perr != nil:
		return built, settle(errors.Join(err, perr))
	case end.Gone != "":
		return built, fmt.Errorf("%w: build.sh could not be started: %s", codecommit.ErrEnvironment, end.Gone)
	case end.Late:
		built.Note = fmt.Sprintf("build.sh was stopped after %s", b.limit)
	case end.OOMKilled:
		built.Note = fmt.Sprintf("build.sh was stopped: it took more than the %d MiB of memory that it has (limits.memory in .abl/config.yaml)", b.builds.Box.Memory>>20)
	case end.Exit == notFound:
		return built, fmt.Errorf("%w: exit code 127: the container lacks a program: %s (add it in %s, or build on the host)", codecommit.ErrEnvironment, lastLine(built.Stderr), dockerfile)
	}
	return built, nil
}

// notFound is a shell's code for a program that is not there.
const notFound = 127

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// papers are what is kept of a build besides its output: the proof of its box, and
// what passed its gateway.
func (b *box) papers(key string) (all []codecommit.Paper, err error) {
	const most = 32 << 20
	dir := b.builds.Project.Call(key)
	for _, name := range []string{"boundary.json", "gateway.jsonl"} {
		data, err := hostfs.Read(dir, name, most)
		switch {
		case err == nil:
			all = append(all, codecommit.Paper{Name: name, Text: string(data)})
		case !errors.Is(err, hostfs.ErrAbsent):
			return all, err
		}
	}
	return all, os.RemoveAll(dir)
}

// settle gives an error of work on the engine its exit code: unless it is known
// better, the environment failed, which no model can mend.
func settle(err error) error {
	var known *exit.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	code := exit.Environment
	if c := rules().Code(err); c != exit.Bug {
		code = c
	}
	do := ""
	if errors.Is(err, sandbox.ErrUnproven) {
		do = "nothing was started in there; abl doctor --boundary looks at the engine's networks"
	}
	var mistake *strictyaml.Error
	if errors.As(err, &mistake) {
		do = mistake.Hint
	}
	return exit.With(code, err, do)
}
