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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/roles/app"
	"abl/roles/boundary"
	"abl/roles/environment"
)

// Script is the build script of a project.
const Script = "build.sh"

// shell starts the script, wherever the build runs.
var shell = []string{"/bin/sh", "-c", "exec ./" + Script}

// Exit codes of shells for a program that cannot be run or does not exist.
const (
	notRunnable = 126
	notFound    = 127
)

// Builder runs the build of the project.
type Builder interface {
	Build(ctx context.Context) (Built, error)
}

// Built is how a build ended.
type Built struct {
	Code int // exit code, 128 and more for a signal
	// Additional reason, such as that it could not be started.
	Note           string
	Stdout, Stderr string // cut, with a note about the missing part
	// For the user only, such as refused network requests.
	Notes []string
	// Other files for its log, by name.
	Records map[string]string
}

// Why returns why the build failed, "" if it passed. Only exit code 0 is a pass.
func (b Built) Why() string {
	if b.Note == "" && b.Code != 0 {
		return fmt.Sprintf("build.sh ended with exit code %d", b.Code)
	}
	return b.Note
}

// Text returns the build's result for the log and the model.
func (b Built) Text() string {
	why := line(b.Note)
	if n := b.Code - 128; n > 0 && n < 65 { // shells report signals like this
		why = "It was ended by the signal " + syscall.Signal(n).String() + ".\n" + why
	}
	return fmt.Sprintf("EXIT CODE: %d\n%s\nSTDOUT:\n%s\nSTDERR:\n%s", b.Code, why, line(b.Stdout), line(b.Stderr))
}

// ErrEnvironment means that a build failed for a reason that the model cannot fix: a missing tool,
// or the engine.
var ErrEnvironment error = &environment.Error{Class: environment.Unavailable,
	Err: errors.New("the build's environment failed")}

// Host runs build.sh on this machine as the current user, without keys in its environment and
// without standard input.
type Host struct {
	Root    string
	Stream  io.Writer // shows both outputs as they come; may be nil
	Limit   time.Duration
	Secrets *redact.Redactor // removed from the output
}

// Runnable returns why the script of a project cannot be run, "" if no reason is known.
func Runnable(root string) string {
	info, err := os.Stat(filepath.Join(root, Script))
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "build.sh cannot be run: it must be a file in the project's folder, and executable (chmod +x build.sh)"
	}
	return ""
}

// Build implements Builder.
func (h Host) Build(ctx context.Context) (Built, error) {
	return h.build(func(stdout, stderr io.Writer) (app.BuildEnd, error) { return h.run(ctx, stdout, stderr) })
}

// build runs the script once by calling run.
func (h Host) build(run func(stdout, stderr io.Writer) (app.BuildEnd, error)) (Built, error) {
	if note := Runnable(h.Root); note != "" {
		return Built{Code: notRunnable, Note: note}, nil
	}
	stdout, stderr := NewOutput(h.Stream, h.Secrets), NewOutput(h.Stream, h.Secrets)
	end, err := run(stdout, stderr)
	b := Built{Code: end.Exit, Stdout: stdout.Text(), Stderr: stderr.Text(), Notes: end.Notes}
	if end.Late {
		b.Note = fmt.Sprintf("build.sh was stopped after %s", h.Limit)
	}
	return b, err
}

// run runs the script on this machine.
func (h Host) run(ctx context.Context, stdout, stderr io.Writer) (end app.BuildEnd, err error) {
	// proc.Run stops it with all processes that it started.
	cmd := proc.Command(context.WithoutCancel(ctx), shell[0], shell[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.Root, stdout, stderr
	cmd.SysProcAttr = proc.Leader()
	// Processes that it leaves may keep its outputs open.
	cmd.WaitDelay = time.Second
	if err := proc.Adopt(); err != nil {
		return end, err
	}
	runtime.LockOSThread() // proc.Leader applies to the thread
	defer runtime.UnlockOSThread()
	limit := cmp.Or(h.Limit, time.Hour)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	end.Exit, err = proc.Run(limited, cmd, min(limit, 5*time.Second)) // the time for a stopped build to end
	if cmd.Process != nil {
		proc.EndOrphans(cmd.Process.Pid) // such as a server that it left
	}
	end.Late = err != nil && limited.Err() != nil && ctx.Err() == nil
	if end.Late {
		err = nil
	}
	return end, err
}

// half is the number of bytes that are kept of the beginning of an output, and of its end.
const half = 128 << 10

// Output keeps the beginning and the end of a build's output, without secrets. It also shows all of
// it.
type Output struct {
	// Removes secrets before the output is cut, which might happen within one.
	io.WriteCloser
	kept ends
}

// NewOutput returns the output of one build. stream may be nil.
func NewOutput(stream io.Writer, secrets *redact.Redactor) *Output {
	o := &Output{kept: ends{show: cmp.Or(stream, io.Discard)}}
	o.WriteCloser = cmp.Or(secrets, &redact.Redactor{}).Writer(&o.kept)
	return o
}

// Text closes the output and returns what was kept, with a note about the missing part.
func (o *Output) Text() string {
	_ = o.Close() // writes to memory and cannot fail
	k := &o.kept
	tail := k.tail[max(0, len(k.tail)-half):]
	if left := k.all - len(k.head) - len(tail); left > 0 {
		return hostfs.Text(k.head) + fmt.Sprintf("\n[%d bytes of output are left out here]\n", left) + hostfs.Text(tail)
	}
	return hostfs.Text(append(k.head, tail...))
}

// ends keeps the beginning and the end of the data written to it.
type ends struct {
	show       io.Writer
	head, tail []byte
	all        int // bytes that were written
}

// Write implements io.Writer.
func (k *ends) Write(p []byte) (int, error) {
	_, _ = k.show.Write(p) // an error of the terminal must not stop a build
	free := min(half-len(k.head), len(p))
	k.all += len(p)
	k.head, k.tail = append(k.head, p[:free]...), append(k.tail, p[free:]...)
	if len(k.tail) > 2*half { // rarely, so that little data is copied
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-half:]...)
	}
	return len(p), nil
}

// Dockerfile is the path of a project's own image for its builds, based on abl's. Its folder goes to
// the engine, so it must contain no keys.
const Dockerfile = ConfigDir + "/build/Dockerfile"

// EngineID returns the project's id on the engine.
func (p Project) EngineID() string {
	return fmt.Sprintf("cc%.6x", sha256.Sum256([]byte(p.Root)))
}

// Handed returns the project whose records contain the input of builds. It is inside the project's
// folder, because the engine must see it.
func (p Project) Handed() state.Project {
	return state.NewProject(filepath.Join(p.Root, p.Own, ".build"), "src", "tests")
}

// BuildContainer runs build.sh in a container with a copy of the project, without keys, logs and repository. It
// reaches the hosts of network.allow.
type BuildContainer struct {
	Host
	project Project
	env     *environment.Environment
	builds  *app.Builds
	n       int
}

// OpenBuildContainer sets up the environment for builds. o has the user's options.
func OpenBuildContainer(ctx context.Context, p Project, h Host, o environment.Options) (b *BuildContainer, err error) {
	o.Project, o.ID, o.Root, o.Owned = p.Handed(), p.EngineID(), p.Root, p.Root
	o.Life = max(24*time.Hour, h.Limit+time.Hour)
	b = &BuildContainer{Host: h, project: p}
	if b.env, err = environment.Open(ctx, o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(o.Project.Root))
	}
	b.builds = &app.Builds{Containers: b.env.Containers, Project: o.Project, Argv: shell, Tree: b.copy}
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

// Close removes all containers, networks and volumes.
func (b *BuildContainer) Close(ctx context.Context) error {
	_, err := b.env.Close(ctx, nil)
	return errors.Join(err, os.RemoveAll(b.project.Handed().Root))
}

// image builds the image for builds: abl's, or the project's own based on it.
func (b *BuildContainer) image(ctx context.Context) (err error) {
	want, there := images.Want{Agent: images.Tools}, false
	// Only V2: the model can write everything except agent-config, so no link may lead elsewhere.
	if b.project.Name == V2 {
		if _, there, err = b.project.text(Dockerfile); there {
			want.Dockerfile, err = environment.Dockerfile(b.Root, Dockerfile)
		}
	}
	if err == nil {
		b.builds.Image, err = b.env.Images.Ensure(ctx, want)
	}
	if err != nil {
		err = fmt.Errorf("cannot build the image for the build: %w", err)
	}
	return err
}

// gate starts a gateway to the hosts of network.allow, if any.
func (b *BuildContainer) gate(ctx context.Context) error {
	g, err := b.env.Gate(ctx, environment.Access{Place: boundary.PlaceBuilder, Fetch: true})
	reach := " and without a network"
	if g != nil {
		b.builds.Gate, b.builds.Files = g, g.Files
		reach = "; it reaches " + strings.Join(g.Hosts, ", ") + " and nothing else"
	}
	if err == nil {
		b.env.Note("build.sh runs in a container, on a copy of the project" + reach)
	}
	return err
}

// copy writes the project as a tar stream, owned by the container's user. It leaves out logs, keys,
// repositories and .env files.
func (b *BuildContainer) copy(to io.Writer, as string) error {
	p := b.project
	withheld := append(p.keyFiles(), "logs", p.LogsBelow(), ConfigDir)
	return hostfs.TarSome(to, as, p.Root, func(name string, h *tar.Header) bool {
		h.Uid, h.Gid = b.env.UID, b.env.GID
		base := path.Base(name)
		return base != ".git" && !strings.HasPrefix(base, ".env") && !slices.Contains(withheld, name)
	})
}

// Build implements Builder. Each build gets its own container.
func (b *BuildContainer) Build(ctx context.Context) (Built, error) {
	b.n++
	key, end := "build-"+strconv.Itoa(b.n), app.BuildEnd{}
	built, err := b.build(func(stdout, stderr io.Writer) (_ app.BuildEnd, err error) {
		end, err = b.builds.Run(ctx, app.Build{Key: key, Limit: b.Limit, Stdout: stdout, Stderr: stderr})
		return end, err
	})
	var perr error
	built.Records, perr = b.records(key)
	err = errors.Join(err, perr)
	switch {
	case err != nil:
		err = cmp.Or(context.Cause(ctx), err)
	case end.Gone != "":
		err = fmt.Errorf("%w: build.sh could not be started: %s", ErrEnvironment, end.Gone)
	case end.Over != "":
		built.Note = "build.sh was stopped: " + end.Over
	case end.OOMKilled:
		built.Note = fmt.Sprintf("build.sh was stopped: it exceeded its %d MiB of memory (limits.memory in .abl/config.yaml)",
			b.builds.Limits.Memory>>20)
	case end.Exit != 0 && end.Full != "":
		built.Note = "build.sh failed: " + end.Full + " in .abl/config.yaml"
	case end.Exit == notFound:
		lines := strings.Split(strings.TrimSpace(built.Stderr), "\n")
		err = fmt.Errorf("%w: exit code 127: the container lacks a program: %s (add it in %s, or build on the host)",
			ErrEnvironment, lines[len(lines)-1], Dockerfile)
	}
	return built, err
}

// records returns the proof of a build's container and the log of its gateway.
func (b *BuildContainer) records(key string) (map[string]string, error) {
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
