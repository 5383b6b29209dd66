package images

import (
	"cmp"
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

	"abl/internal/cacerts"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/wording"
)

const (
	tidyTime  = 30 * time.Second // for what must be removed although the caller has gone
	staleTime = time.Hour        // a stage this old belongs to no build that still runs
)

// build makes one image.
func (m *Maker) build(ctx context.Context, r recipe, labels map[string]string) error {
	if err := m.buildable(ctx, r); err != nil {
		return err
	}
	begun := time.Now()
	id := fmt.Sprintf("%d-%s", begun.Unix(), rand.Text())
	files, args, err := m.prepare(r, labels, id)
	if err != nil {
		return err
	}
	if r.stage {
		defer m.sweep(ctx, id)
	}
	network := m.networkOf(r)
	failed := m.attempt(ctx, r, files, network, args)
	if failed != nil && failed.says(noNames) && network == "" && r.name != projectImage && ctx.Err() == nil {
		m.say("%s: the engine's own network finds no names; trying with the host's", r.name)
		failed = m.attempt(ctx, r, files, "host", args)
	}
	switch {
	case failed == nil:
		m.say("%s: made after %.1fs", r.name, time.Since(begun).Seconds())
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // given up, not failed
	}
	m.showFailed(r.name, failed)
	return failed
}

// buildable refuses a project's Dockerfile that the engine's builder does not support.
func (m *Maker) buildable(ctx context.Context, r recipe) error {
	if r.name != projectImage {
		return nil
	}
	info, err := m.Engine.Info(ctx)
	if err != nil || info.BuildKit {
		return err
	}
	if err := checkClassic(r.dockerfile()); err != nil {
		return fmt.Errorf("%w: %w", ErrDockerfile, err)
	}
	return nil
}

// networkOf is what the steps of a build reach. Another project's Dockerfile gets
// this machine's own network only by a setting of the user, because its output may be
// hostile.
func (m *Maker) networkOf(r recipe) string {
	switch {
	case !r.network:
		return "none"
	case r.name == projectImage && m.Host:
		return "host"
	case r.name != projectImage && proxyIsLocal(m.Env):
		// A proxy on this machine's loopback is not there from the engine's bridge.
		return "host"
	}
	return ""
}

// prepare completes a recipe's context and arguments with what is no part of its hash.
func (m *Maker) prepare(r recipe, labels map[string]string, id string) ([]entry, map[string]string, error) {
	files, text := slices.Clone(r.files), r.dockerfile()
	if trusted := (cacerts.Finder{Env: m.Env, Extra: cmp.Or(m.CACert, m.Env("ABL_CA_CERT"))}); r.name == projectImage && trusted.Own() {
		ca, err := trusted.Bundle()
		if err != nil {
			return nil, nil, fmt.Errorf("cannot use the certificates for the project's Dockerfile: %w", err)
		}
		text, files = trusting(text), append(files, bytesEntry(caFile, 0o644, ca))
	}
	for i, f := range files {
		if f.name == dockerfileName {
			files[i] = bytesEntry(f.name, f.mode, []byte(text+"\n"+labelLine(labels)+"\n"))
		}
	}
	args := proxyArgs(m.Env)
	maps.Copy(args, r.args)
	if r.parent != "" {
		args["ABL_IMAGE"] = r.parent
	}
	if r.args["GO_VERSION"] != "" {
		args["GOPROXY"] = goProxy(m.Env)
	}
	if r.args["NPM_SUM"] != "" {
		args["NPM_REGISTRY"] = npmRegistry(m.Env)
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
	defer reader.Close() // an engine that refuses early leaves the packer writing
	go func() { writer.CloseWithError(pack(writer, files)) }()
	out := output{name: r.name, m: m}
	b := sandbox.ImageBuild{Ref: r.ref, Network: network, Args: args}
	if r.name == projectImage { // abl's own need no more than the classic builder has
		b.BuildKit, b.Images = true, imagesOf(r.dockerfile())
	}
	if err := m.Engine.Build(ctx, reader, b, out.line); err != nil {
		return &BuildError{Ref: r.ref, Lines: out.lines, cause: err}
	}
	out.ended()
	return nil
}

// sweep removes the stages of a build: they hold the certificates that no
// image may keep. What a killed abl left goes once it is old.
func (m *Maker) sweep(ctx context.Context, id string) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	stages, _, err := m.Engine.ListImages(late, labelStage)
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

const (
	mostLines = 2000 // of a step's output are kept
	tailLines = 20   // of them are shown where a file has them all
	lineRunes = 400  // of one of them
	stepRunes = 100  // of a step's command
	noticed   = 500 * time.Millisecond
)

// output follows what a build prints. Who watches sees the step under way, and how long it took
// when it is over; what that step printed is kept.
type output struct {
	m     *Maker
	name  string
	step  string // "" before the first one
	begun time.Time
	lines []string
}

func (o *output) line(raw string) {
	line := clean(raw)
	if line == "" {
		return
	}
	if number, step, ok := strings.Cut(line, " : "); ok && strings.HasPrefix(number, "Step ") {
		o.ended()
		o.step = fmt.Sprintf("%s: s%s %s", o.name, number[1:], wording.Cut(step, stepRunes))
		o.begun, o.lines = time.Now(), nil
		o.m.Tell(o.begun, o.step)
	}
	if len(o.lines) == mostLines {
		o.lines = o.lines[1:]
	}
	o.lines = append(o.lines, line)
}

// ended tells how long a step took, unless it took none to speak of.
func (o *output) ended() {
	if took := time.Since(o.begun); o.step != "" && took >= noticed {
		o.m.say("%s %.1fs", o.step, took.Seconds())
	}
}

// showFailed shows what the failed step of a build printed: all of it where no file has it.
func (m *Maker) showFailed(image string, failed *BuildError) {
	shown := failed.Lines
	if m.Keep != nil {
		failed.File = m.Keep(image, strings.Join(failed.Lines, "\n")+"\n")
	}
	if failed.File != "" {
		shown = failed.last(tailLines)
	}
	for _, line := range shown {
		m.say("%s | %s", image, line)
	}
}

// clean makes a line of another program fit for one line of a terminal.
func clean(raw string) string { return wording.Cut(redact.Line(raw), lineRunes) }

// BuildError is a build that failed. It wraps its cause and sandbox.ErrNoImage.
type BuildError struct {
	Ref   string
	Lines []string // what the failed step printed, each fit for a terminal
	File  string   // that has them, too; "" for none
	cause error
}

func (e *BuildError) last(most int) []string { return e.Lines[max(0, len(e.Lines)-most):] }

// Error gives the cause, what the build printed last, and where all of it is.
func (e *BuildError) Error() string {
	s := fmt.Sprintf("cannot build image %q: %s", e.Ref, redact.Line(e.cause.Error()))
	for _, line := range e.last(5) {
		s += "\n  | " + line
	}
	if e.File != "" {
		s += "\nall that the step printed is in " + e.File
	}
	for _, h := range hints {
		if e.says(h.words) {
			return s + "\n" + h.hint
		}
	}
	return s
}

// Unwrap lets a caller tell a cancelled build and see that an image is missing.
func (e *BuildError) Unwrap() []error { return []error{e.cause, sandbox.ErrNoImage} }

func (e *BuildError) says(words []string) bool {
	all := e.cause.Error() + "\n" + strings.Join(e.Lines, "\n")
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(all, word) })
}

// noNames are the words of a build that found no names, or no bridge to ask over.
var noNames = []string{
	"Temporary failure resolving", "Temporary failure in name resolution", "EAI_AGAIN", "ENOTFOUND",
	"Could not resolve", "could not find bridge", "network bridge not found",
}

// hints say what a person can do, where abl knows it.
var hints = []struct {
	words []string
	hint  string
}{
	{[]string{"SELF_SIGNED_CERT", "UNABLE_TO_GET_ISSUER", "UNABLE_TO_VERIFY", "certificate verify failed",
		"certificate signed by unknown"},
		"a proxy seems to re-sign TLS here: name the certificate of its authority with --ca-cert FILE or ABL_CA_CERT"},
	{[]string{"unknown instruction", "Unknown instruction"},
		"if the Dockerfile has heredocs (<<EOF), begin it with the line `# syntax=docker/dockerfile:1`, or update Docker"},
	{[]string{"pull access denied", "unauthorized", "401 Unauthorized", "no basic auth credentials",
		"authentication required"},
		"a registry refused an image that the Dockerfile names: run `docker login HOST`; abl uses the credentials of your Docker config"},
	{[]string{"no space left on device"}, "the engine's disk is full: `docker system df` shows what takes it"},
	{noNames, "builds find no network: set HTTPS_PROXY and HTTP_PROXY, or bring the images with `abl images load FILE`; " +
		"a Dockerfile of your own may use this machine's network when you say so (network.builds: host)"},
}

// How long a registry may stay silent. One that cannot be reached at all is
// given up soon; a slow one is not, as long as something moves.
const (
	firstSign = 15 * time.Second
	nextSign  = time.Minute
)

var errSilent = errors.New("no sign of life from the registry")

// waysToABase are what a person can do where no registry answers.
const waysToABase = "do one of these: `abl images load FILE` with a file that `abl images save` wrote elsewhere; " +
	"let the engine reach a registry (its own proxy or mirror setting); " +
	"run scripts/base.sh of abl's repository as root on Debian or Ubuntu, which makes a base"

// makeBase stands on the registry's Debian where a registry answers, and else on the
// one that scripts/base.sh imported.
func (m *Maker) makeBase(ctx context.Context, s seen) (ref string, labels map[string]string, err error) {
	r := baseRecipe(s.arch)
	origin, err := m.pull(ctx)
	r.parent = origin
	if _, imported := s.labels[mirrorBase]; err != nil && imported && ctx.Err() == nil {
		m.say("base: no registry answers; standing on %s", mirrorBase)
		r.parent, origin, err = mirrorBase, fromMirror, nil
	}
	switch {
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case err != nil:
		return "", nil, fmt.Errorf("%w: no base image: no registry answers (%s); %s", sandbox.ErrNoImage,
			redact.Line(err.Error()), waysToABase)
	}
	r = r.sealed(s.arch)
	labels = r.labels()
	// What stands upon it inherits where it came from.
	labels[labelBase], labels[labelRecipe], labels[labelOrigin] = r.ref, s.recipe, origin
	return r.ref, labels, m.build(ctx, r, labels)
}

// pull gives up on a registry that shows no sign of life.
func (m *Maker) pull(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(firstSign, func() { cancel(errSilent) })
	defer watch.Stop()
	m.say("base: pulling %s", registryBase)
	begun := time.Now()
	digest, err := m.Engine.Pull(ctx, registryBase, func(line string) {
		watch.Reset(nextSign)
		m.Tell(begun, "base: "+clean(line))
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return "", errSilent
	}
	return digest, err
}
