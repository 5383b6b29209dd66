package codecommit

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/environment"
)

// Dockerfile is a project's own image for its builds, on top of abl's. All of its
// folder goes to the engine, so it has one of its own, without keys.
const Dockerfile = ConfigDir + "/build/Dockerfile"

// EngineID is the project's name on the engine.
func (p Project) EngineID() string {
	return fmt.Sprintf("cc%.6x", sha256.Sum256([]byte(p.Root)))
}

// Handed is the folder in which builds have what is handed to them. It is in the
// project, where an engine finds it.
func (p Project) Handed() state.Project {
	return state.NewProject(filepath.Join(p.Root, p.Yard), "src", "tests")
}

// Box runs build.sh in a container that sees a copy of the project, no key, no log and
// no repository, and reaches the hosts of network.allow or nothing.
type Box struct {
	Host
	project Project
	env     *environment.Environment
	builds  *roles.Builds
	n       int
}

// OpenBox makes what builds need on the engine. o has what the person says about it.
func OpenBox(ctx context.Context, p Project, h Host, o environment.Options) (b *Box, err error) {
	o.Project, o.ID, o.Root, o.Owned = p.Handed(), p.EngineID(), p.Root, p.Root
	o.Cut, o.Life = len(o.Conf.Network.Allow) == 0, max(24*time.Hour, h.Limit+time.Hour)
	b = &Box{Host: h, project: p}
	if b.env, err = environment.Open(ctx, o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(o.Project.Root))
	}
	b.builds = &roles.Builds{
		Boxes: b.env.Boxes, Project: o.Project, Argv: shell, Tree: b.copy,
	}
	for _, name := range []string{".git", ".env", ConfigDir} {
		b.builds.Absent = append(b.builds.Absent, filepath.Join(p.Root, name))
	}
	if err = b.image(ctx); err == nil {
		err = b.gate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	return b, nil
}

// Close takes everything down: containers, networks, volumes.
func (b *Box) Close(ctx context.Context) error {
	_, err := b.env.Close(ctx, nil)
	return errors.Join(err, os.RemoveAll(b.project.Handed().Root))
}

// image makes the one that builds run in: abl's, or the project's own on top of it.
func (b *Box) image(ctx context.Context) error {
	want := images.Want{Agent: images.Tools}
	own := filepath.Join(b.Root, Dockerfile)
	if _, err := os.Lstat(own); err == nil && b.project.Name == V2 {
		// All but agent-config is the model's to write.
		if real, err := filepath.EvalSymlinks(own); err == nil && real != own {
			return problem("put the real folder there", "cannot build an image from %q: a link leads there", Dockerfile)
		}
		if want.Dockerfile, err = environment.Dockerfile(b.Root, Dockerfile); err != nil {
			return err
		}
	}
	var err error
	if b.builds.Image, err = b.env.Images.Ensure(ctx, want); err != nil {
		return fmt.Errorf("cannot make the image for the build: %w", err)
	}
	return nil
}

// gate lets the build's tools through to the hosts of network.allow, if any.
func (b *Box) gate(ctx context.Context) error {
	g, err := b.env.Gate(ctx, environment.Access{Place: roles.PlaceBuilder, Fetch: true})
	if err != nil {
		return err
	}
	if g == nil {
		b.env.Note("build.sh runs in a container, on a copy of the project and without a network")
		return nil
	}
	b.builds.Gate, b.builds.Files = g, g.Files
	b.env.Note("build.sh runs in a container, on a copy of the project; it reaches " + strings.Join(g.Hosts, ", ") + " and nothing else")
	return nil
}

// copy writes the project as a tar stream, as the property of the container's user: all
// of it but logs, keys, repositories and what .env files hold.
func (b *Box) copy(to io.Writer, as string) error {
	p := b.project
	withheld := append(p.keyFiles(), "logs", p.LogsBelow(), p.Stage, ConfigDir)
	return hostfs.TarSome(to, as, p.Root, func(name string, h *tar.Header) bool {
		h.Uid, h.Gid = b.env.UID, b.env.GID
		base := path.Base(name)
		return base != ".git" && !strings.HasPrefix(base, ".env") && !slices.Contains(withheld, name)
	})
}

// Build runs it once, in a container of its own.
func (b *Box) Build(ctx context.Context) (built Built, err error) {
	if note, code := Runnable(b.Root); note != "" {
		return Built{Code: code, Note: note}, nil
	}
	b.n++
	key := "build-" + strconv.Itoa(b.n)
	out, voice := NewOutput(b.Stream, b.Secrets), NewOutput(b.Stream, b.Secrets)
	end, err := b.builds.Run(ctx, roles.Build{Key: key, Limit: b.Limit, Stdout: out, Stderr: voice})
	built = Built{Code: end.Exit, Signal: end.Signal, Stdout: out.Text(), Stderr: voice.Text(), Notes: end.Notes}
	var perr error
	built.Papers, perr = b.papers(key)
	switch err = errors.Join(err, perr); {
	case err != nil:
		return built, cmp.Or(context.Cause(ctx), err)
	case end.Gone != "":
		return built, fmt.Errorf("%w: build.sh could not be started: %s", ErrEnvironment, end.Gone)
	case end.Late:
		built.Note = fmt.Sprintf("build.sh was stopped after %s", b.Limit)
	case end.OOMKilled:
		built.Note = fmt.Sprintf("build.sh was stopped: it took more than the %d MiB of memory that it has (limits.memory in .abl/config.yaml)", b.builds.Limits.Memory>>20)
	case end.Exit == notFound:
		lines := strings.Split(strings.TrimSpace(built.Stderr), "\n")
		return built, fmt.Errorf("%w: exit code 127: the container lacks a program: %s (add it in %s, or build on the host)", ErrEnvironment, lines[len(lines)-1], Dockerfile)
	}
	return built, nil
}

// papers are what is kept of a build besides its output: the proof of its container,
// and what passed its gateway.
func (b *Box) papers(key string) (map[string]string, error) {
	all, dir := map[string]string{}, b.builds.Project.Call(key)
	for _, name := range []string{"boundary.json", "gateway.jsonl"} {
		data, err := hostfs.Read(dir, name, mostText)
		if err == nil {
			all[name] = string(data)
		} else if !errors.Is(err, hostfs.ErrAbsent) {
			return all, err
		}
	}
	return all, os.RemoveAll(dir)
}
