package codecommit

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

	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/orchestrator/project"
	"abl/roles"
)

// Dockerfile is a project's own image for its builds, on top of abl's. All of its
// folder goes to the engine, so it has one of its own, without keys.
const Dockerfile = ConfigDir + "/build/Dockerfile"

// EngineID is the project's name on the engine.
func (p Project) EngineID() string {
	sum := sha256.Sum256([]byte(p.Root))
	return "cc" + hex.EncodeToString(sum[:6])
}

// Handed is the folder in which builds have what is handed to them. It is in the
// project, where an engine finds it.
func (p Project) Handed() project.Project {
	return project.New(filepath.Join(p.Root, p.Yard), "src", "tests")
}

// Box runs build.sh in a container that sees a copy of the project, no key, no log and
// no repository, and reaches the hosts of network.allow or nothing.
type Box struct {
	Root    string
	Builds  *roles.Builds
	Limit   time.Duration
	Stream  io.Writer // shows both outputs as they come
	Secrets *redact.Redactor
	n       int
}

// Build runs it once, in a container of its own.
func (b *Box) Build(ctx context.Context) (built Built, err error) {
	if note, code := Runnable(b.Root); note != "" {
		return Built{Code: code, Note: note}, nil
	}
	b.n++
	key := "build-" + strconv.Itoa(b.n)
	out, voice := NewOutput(b.Stream, b.Secrets), NewOutput(b.Stream, b.Secrets)
	end, err := b.Builds.Run(ctx, roles.Build{Key: key, Limit: b.Limit, Stdout: out, Stderr: voice})
	built = Built{Code: end.Exit, Signal: end.Signal, Stdout: out.Close(), Stderr: voice.Close(), Notes: end.Notes}
	papers, perr := b.papers(key)
	built.Papers = papers
	switch err = errors.Join(err, perr); {
	case err != nil && context.Cause(ctx) != nil:
		return built, context.Cause(ctx)
	case err != nil:
		return built, err
	case end.Gone != "":
		return built, fmt.Errorf("%w: build.sh could not be started: %s", ErrEnvironment, end.Gone)
	case end.Late:
		built.Note = fmt.Sprintf("build.sh was stopped after %s", b.Limit)
	case end.OOMKilled:
		built.Note = fmt.Sprintf("build.sh was stopped: it took more than the %d MiB of memory that it has (limits.memory in .abl/config.yaml)", b.Builds.Box.Memory>>20)
	case end.Exit == notFound:
		lines := strings.Split(strings.TrimSpace(built.Stderr), "\n")
		return built, fmt.Errorf("%w: exit code 127: the container lacks a program: %s (add it in %s, or build on the host)", ErrEnvironment, lines[len(lines)-1], Dockerfile)
	}
	return built, nil
}

// papers are what is kept of a build besides its output: the proof of its container,
// and what passed its gateway.
func (b *Box) papers(key string) (map[string]string, error) {
	const most = 32 << 20
	all, dir := map[string]string{}, b.Builds.Project.Call(key)
	for _, name := range []string{"boundary.json", "gateway.jsonl"} {
		data, err := hostfs.Read(dir, name, most)
		if err == nil {
			all[name] = string(data)
		} else if !errors.Is(err, hostfs.ErrAbsent) {
			return all, err
		}
	}
	return all, os.RemoveAll(dir)
}
