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

	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/wording"
)

const (
	tidyTime  = 30 * time.Second // to remove stages after the build was cancelled
	staleTime = time.Hour        // age of a stage whose build cannot be running
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
		m.say("%s: the engine's network cannot resolve names; trying the host's network", r.name)
		failed = m.attempt(ctx, r, files, "host", args)
	}
	switch {
	case failed == nil:
		m.say("%s: built in %.1fs", r.name, time.Since(begun).Seconds())
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // cancelled, not failed
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

// networkOf returns the network of a build's steps. A project's Dockerfile may be hostile: it gets
// the host's network only if the user sets network.builds.
func (m *Maker) networkOf(r recipe) string {
	switch {
	case !r.network:
		return "none"
	case r.name == projectImage && m.Host:
		return "host"
	case r.name != projectImage && proxyIsLocal(m.Env):
		// The engine's bridge cannot reach a proxy on this machine's loopback.
		return "host"
	}
	return ""
}

// prepare returns a recipe's build context and arguments, with the parts that its hash does not
// cover: labels, proxies, registries and certificates.
func (m *Maker) prepare(r recipe, labels map[string]string, id string) ([]entry, map[string]string, error) {
	files, text := slices.Clone(r.files), r.dockerfile()
	if trusted := (CACerts{Env: m.Env, Extra: cmp.Or(m.CACert, m.Env("ABL_CA_CERT"))}); r.name == projectImage && trusted.Own() {
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

// attempt builds an image once. It returns nil on success.
func (m *Maker) attempt(
	ctx context.Context, r recipe, files []entry, network string, args map[string]string,
) *BuildError {
	reader, writer := io.Pipe()
	defer reader.Close() // stops the goroutine if the engine refuses the build early
	go func() { writer.CloseWithError(pack(writer, files)) }()
	out := output{name: r.name, m: m}
	b := sandbox.ImageBuild{Ref: r.ref, Network: network, Args: args}
	if r.name == projectImage { // the classic builder is enough for abl's own Dockerfiles
		b.BuildKit, b.Images = true, imagesOf(r.dockerfile())
	}
	if err := m.Engine.Build(ctx, reader, b, out.line); err != nil {
		return &BuildError{Ref: r.ref, Lines: out.lines, cause: err}
	}
	out.ended()
	return nil
}

// sweep removes the stages of a build, which contain certificates, and old stages of killed builds.
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

// stale reports whether a stage is old, by the time in its label. A label without a time counts as
// old.
func stale(stage string, now time.Time) bool {
	begun, _, _ := strings.Cut(stage, "-")
	seconds, err := strconv.ParseInt(begun, 10, 64)
	return err != nil || now.Sub(time.Unix(seconds, 0)) > staleTime
}

const (
	mostLines = 2000                   // last lines of a step's output to keep
	tailLines = 20                     // last lines to show if a file has all
	lineRunes = 400                    // length of a line
	stepRunes = 100                    // length of a step's command
	noticed   = 500 * time.Millisecond // steps that take longer are reported
)

// output processes the output of a build. It reports the current step as progress, reports the time
// of finished steps, and keeps the lines of the current step.
type output struct {
	m     *Maker
	name  string
	step  string // "" before the first one
	begun time.Time
	lines []string
}

// line handles one line of a build: a new step, or output of the current one.
func (o *output) line(raw string) {
	line := clean(raw)
	if line == "" {
		return
	}
	if number, step, ok := strings.Cut(line, " : "); ok && strings.HasPrefix(number, "Step ") {
		o.ended()
		o.step = fmt.Sprintf("%s: s%s %s", o.name, number[1:], wording.Cut(step, stepRunes))
		o.begun, o.lines = time.Now(), nil
		o.m.Report(o.begun, o.step)
	}
	if len(o.lines) == mostLines {
		o.lines = o.lines[1:]
	}
	o.lines = append(o.lines, line)
}

// ended reports how long the current step took, if that is long enough.
func (o *output) ended() {
	if took := time.Since(o.begun); o.step != "" && took >= noticed {
		o.m.say("%s %.1fs", o.step, took.Seconds())
	}
}

// showFailed prints the output of the failed step: its end if a file has the rest, all of it
// otherwise.
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

// clean returns a line of another program's output that is safe to print, and at most lineRunes
// long.
func clean(raw string) string { return wording.Cut(redact.Line(raw), lineRunes) }

// BuildError is a build that failed. It wraps its cause and sandbox.ErrNoImage.
type BuildError struct {
	Ref   string
	Lines []string // output of the failed step, safe to print
	File  string   // path of a file with the lines, may be ""
	cause error
}

func (e *BuildError) last(most int) []string { return e.Lines[max(0, len(e.Lines)-most):] }

// Error returns the cause, the last lines of the output, the file with the rest, and a hint.
func (e *BuildError) Error() string {
	s := fmt.Sprintf("cannot build image %q: %s", e.Ref, redact.Line(e.cause.Error()))
	for _, line := range e.last(5) {
		s += "\n  | " + line
	}
	if e.File != "" {
		s += "\nthe whole output of the step is in " + e.File
	}
	for _, h := range hints {
		if e.says(h.words) {
			return s + "\n" + h.hint
		}
	}
	return s
}

// Unwrap returns the cause and sandbox.ErrNoImage.
func (e *BuildError) Unwrap() []error { return []error{e.cause, sandbox.ErrNoImage} }

func (e *BuildError) says(words []string) bool {
	all := e.cause.Error() + "\n" + strings.Join(e.Lines, "\n")
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(all, word) })
}

// noNames are messages of builds that could not resolve names, or that have no bridge.
var noNames = []string{
	"Temporary failure resolving", "Temporary failure in name resolution", "EAI_AGAIN", "ENOTFOUND",
	"Could not resolve", "could not find bridge", "network bridge not found",
}

// hints are fixes for known messages of failed builds.
var hints = []struct {
	words []string
	hint  string
}{
	{[]string{"SELF_SIGNED_CERT", "UNABLE_TO_GET_ISSUER", "UNABLE_TO_VERIFY", "certificate verify failed",
		"certificate signed by unknown"},
		"a proxy seems to intercept TLS: name the file of its CA certificate with --ca-cert or ABL_CA_CERT"},
	{[]string{"unknown instruction", "Unknown instruction"},
		"if the Dockerfile has heredocs (<<EOF), begin it with the line `# syntax=docker/dockerfile:1`, or update Docker"},
	{[]string{"pull access denied", "unauthorized", "401 Unauthorized", "no basic auth credentials",
		"authentication required"},
		"a registry refused an image that the Dockerfile names: run `docker login HOST`; " +
			"abl uses the credentials of your Docker config"},
	{[]string{"no space left on device"}, "the engine's disk is full: `docker system df` shows its use"},
	{noNames, "builds have no network: set HTTPS_PROXY and HTTP_PROXY, or load the images with `abl images load FILE`; " +
		"network.builds: host builds your own Dockerfile on this machine's network"},
}

// Time limits for a registry until its first progress line, and between two of them. A slow
// registry that makes progress has no limit.
const (
	firstSign = 15 * time.Second
	nextSign  = time.Minute
)

var errSilent = errors.New("the registry does not respond")

// waysToABase are the user's options without a registry.
const waysToABase = "do one of these: run `abl images load FILE` with a file that `abl images save` wrote elsewhere; " +
	"give the engine a proxy or a registry mirror; " +
	"run scripts/base.sh of abl's repository as root on Debian or Ubuntu, which makes a base image"

// makeBase builds the base image on the registry's Debian image or, if no registry responds, on the
// one that scripts/base.sh imported. It returns the reference and labels of the new image.
func (m *Maker) makeBase(ctx context.Context, s seen) (ref string, labels map[string]string, err error) {
	r := baseRecipe(s.arch)
	origin, err := m.pull(ctx)
	r.parent = origin
	if _, imported := s.labels[mirrorBase]; err != nil && imported && ctx.Err() == nil {
		m.say("base: no registry responds; using %s", mirrorBase)
		r.parent, origin, err = mirrorBase, fromMirror, nil
	}
	switch {
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case err != nil:
		return "", nil, fmt.Errorf("%w: no base image: no registry responds (%s); %s", sandbox.ErrNoImage,
			redact.Line(err.Error()), waysToABase)
	}
	r = r.sealed(s.arch)
	labels = r.labels()
	// The images on top of it inherit these labels.
	labels[labelBase], labels[labelRecipe], labels[labelOrigin] = r.ref, s.recipe, origin
	return r.ref, labels, m.build(ctx, r, labels)
}

// pull pulls the registry's Debian image and returns its digest. It fails if the registry does not
// respond within firstSign, or stops for nextSign.
func (m *Maker) pull(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(firstSign, func() { cancel(errSilent) })
	defer watch.Stop()
	m.say("base: pulling %s", registryBase)
	begun := time.Now()
	digest, err := m.Engine.Pull(ctx, registryBase, func(line string) {
		watch.Reset(nextSign)
		m.Report(begun, "base: "+clean(line))
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return "", errSilent
	}
	return digest, err
}
