package images

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	tidyTime  = 30 * time.Second // for what must be removed although the caller has gone
	staleTime = time.Hour        // a stage this old belongs to no build that still runs
)

// build makes one image; extra are labels beside the recipe's own.
func (m *Maker) build(ctx context.Context, r recipe, extra map[string]string) error {
	id := fmt.Sprintf("%d-%s", time.Now().Unix(), rand.Text())
	files, args, err := m.prepare(r, extra, id)
	if err != nil {
		return err
	}
	if args["ABL_BUILD"] != "" {
		defer m.sweep(ctx, id)
	}
	network := m.networkOf(r)
	failed := m.attempt(ctx, r, files, network, args)
	if failed != nil && failed.lookup() && network == "" && r.name != projectImage && ctx.Err() == nil {
		m.say("%s: the engine's own network finds no names; trying with the host's", r.name)
		failed = m.attempt(ctx, r, files, "host", args)
	}
	switch {
	case failed != nil && ctx.Err() != nil:
		return ctx.Err() // given up, not failed
	case failed != nil:
		return failed
	}
	return nil
}

// networkOf is what the steps of a build reach. A Dockerfile of somebody else's gets
// this machine's own network by the person's setting alone: what it prints may be
// anybody's words.
func (m *Maker) networkOf(r recipe) string {
	switch {
	case !r.network:
		return "none"
	case r.name == projectImage && m.Host:
		return "host"
	case r.name != projectImage && proxyIsLocal(m.env):
		// A proxy on this machine's loopback is not there from the engine's bridge.
		return "host"
	}
	return ""
}

// prepare completes a recipe's context and arguments with what is no part of its hash.
func (m *Maker) prepare(r recipe, extra map[string]string, id string) ([]entry, map[string]string, error) {
	labels := r.labels()
	maps.Copy(labels, extra)
	files := slices.Clone(r.files)
	for i, f := range files {
		if f.name == dockerfileName {
			files[i] = bytesEntry(f.name, f.mode, append(slices.Clone(f.data), "\n"+labelLine(labels)+"\n"...))
		}
	}
	args := proxyArgs(m.env)
	maps.Copy(args, r.args)
	if r.parent != "" {
		args["ABL_IMAGE"] = r.parent
	}
	if r.stage {
		args["ABL_BUILD"] = id
		ca, err := m.certificates()
		if err != nil {
			return nil, nil, err
		}
		files = append(files, bytesEntry("ca.crt", 0o644, ca))
	}
	return files, args, nil
}

func (m *Maker) attempt(ctx context.Context, r recipe, files []entry, network string, args map[string]string) *BuildError {
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(writer, files)
		writer.CloseWithError(err)
		packed <- err
	}()
	out := output{name: r.name, say: m.say}
	err := m.Engine.Build(ctx, reader, r.ref, network, args, out.line)
	_ = reader.Close() // an engine that refused early leaves the packer writing
	if perr := <-packed; perr != nil && err != nil && !errors.Is(perr, io.ErrClosedPipe) {
		err = perr
	}
	if err == nil {
		return nil
	}
	return &BuildError{Ref: r.ref, Tail: out.tail, cause: err}
}

// sweep removes the stages of a build: they hold the certificates that no
// image may keep. What a killed abl left goes once it is old.
func (m *Maker) sweep(ctx context.Context, id string) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	stages, err := m.Engine.ListImages(late, labelStage)
	if err != nil {
		m.say("cannot look for leftover build stages: %v", err)
		return
	}
	for ref, labels := range stages {
		if stage := labels[labelStage]; stage == id || stale(stage, time.Now()) {
			if err := m.Engine.RemoveImage(late, ref); err != nil {
				m.say("cannot remove the build stage %s: %v", ref, err)
			}
		}
	}
}

// stale reads the time out of a stage's label; one that has none is nobody's.
func stale(stage string, now time.Time) bool {
	begun, _, _ := strings.Cut(stage, "-")
	seconds, err := strconv.ParseInt(begun, 10, 64)
	return err != nil || now.Sub(time.Unix(seconds, 0)) > staleTime
}
