package roles

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"abl/internal/failpoint"
	"abl/orchestrator/dirs"
	"abl/orchestrator/event"
	"abl/orchestrator/project"
	"abl/orchestrator/sandbox"
)

// AppEngine is what the system under test needs of an engine.
type AppEngine interface {
	SiteEngine
	EnsureVolume(context.Context, sandbox.Volume) error
	Sweep(ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool) ([]string, error)
	CopyIn(ctx context.Context, name, dir string, tar io.Reader) error
}

// App runs the system under test: a throw-away copy of the committed tree in a
// box of its own, with the broker as its first process.
type App struct {
	Engine   AppEngine
	Site     *Site
	Project  project.Project
	ID       string
	Image    string
	UID, GID int
	Root     bool // see Runner
	Box      sandbox.Limits
	Spec     dirs.BrokerSpec // without token, events and log
	Env      []string
	Services []ServiceBox
	Copy     string                // overlay or tar
	Tree     func(io.Writer) error // writes the tree as a tar, for Copy tar
	Out      event.Sink
}

// ServiceBox is a further container on the app's network.
type ServiceBox struct {
	Name, Image string
	Env         []string
}

// Up is a running app as its Verifier needs it.
type Up struct {
	URL    string // http://app:PORT, "" without an app section
	Broker string
	Token  string
	Failed string // the observed start-up failure, in spec language; "" when it is ready
}

// appDir is where a call keeps its app's files.
func (a *App) dir(key string) string { return filepath.Join(a.Project.Call(key), "app") }

// names of what an app run puts on the engine.
func (a *App) box() string     { return BoxName(a.ID, "app") }
func (a *App) scratch() string { return BoxName(a.ID, "app-scratch") }
func (a *App) tree() string    { return BoxName(a.ID, "app-tree") }

// Up starts the app for the call, or finds it running for this very call, and
// waits until it is ready or has failed.
func (a *App) Up(ctx context.Context, key string) (Up, error) {
	up, running, err := a.adopt(ctx, key)
	if err != nil {
		return up, err
	}
	if !running {
		if err := a.Down(ctx); err != nil {
			return up, err
		}
		if up, err = a.start(ctx, key); err != nil {
			return up, fmt.Errorf("cannot start the app's container: %w", err)
		}
	}
	failpoint.Here("app.started")
	return a.await(ctx, key, up)
}

// adopt finds the app that an earlier abl started for this call.
func (a *App) adopt(ctx context.Context, key string) (Up, bool, error) {
	st, err := a.Engine.Status(ctx, a.box())
	if errors.Is(err, sandbox.ErrNotFound) {
		return Up{}, false, nil
	}
	if err != nil || st.State != sandbox.Running || st.Labels[sandbox.LabelCall] != key {
		return Up{}, false, err
	}
	var spec dirs.BrokerSpec
	ok, err := readJSON(filepath.Join(a.dir(key), "in", "broker.json"), &spec)
	return a.up(spec), ok, err
}

func (a *App) up(spec dirs.BrokerSpec) Up {
	up := Up{Broker: fmt.Sprintf("http://%s:%d", dirs.AppAlias, dirs.BrokerPort), Token: spec.Token}
	if spec.App != nil {
		up.URL = fmt.Sprintf("http://%s:%d", dirs.AppAlias, spec.App.Port)
	}
	return up
}

func (a *App) start(ctx context.Context, key string) (Up, error) {
	holder, err := a.Site.Holder(ctx, PlaceApp)
	if err != nil {
		return Up{}, err
	}
	spec, err := a.layOut(key)
	if err != nil {
		return Up{}, err
	}
	a.Out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.AppStart, Phase: a.Site.Phase, Call: key})
	if err := a.services(ctx, key); err != nil {
		return Up{}, err
	}
	if err := a.volumes(ctx, key); err != nil {
		return Up{}, err
	}
	if _, err := a.Engine.Create(ctx, a.boxFor(key, holder)); err != nil {
		return Up{}, err
	}
	if err := a.fill(ctx); err != nil {
		return Up{}, err
	}
	return a.up(spec), a.Engine.Start(ctx, a.box())
}

// layOut writes the broker's orders and the two files that take its words.
func (a *App) layOut(key string) (dirs.BrokerSpec, error) {
	spec := a.Spec
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return spec, err
	}
	spec.Token, spec.Events, spec.Log = hex.EncodeToString(token), dirs.Events, dirs.AppLog
	data, err := json.Marshal(spec)
	if err != nil {
		return spec, fmt.Errorf("internal error: %w", err)
	}
	in := filepath.Join(a.dir(key), "in")
	if err := os.MkdirAll(in, 0o755); err != nil {
		return spec, err
	}
	if err := os.MkdirAll(a.Project.Empty(), 0o755); err != nil {
		return spec, err
	}
	for _, name := range []string{"events", "app.log"} {
		path := filepath.Join(a.dir(key), name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return spec, err
		}
		if a.Root {
			if err := os.Chown(path, a.UID, a.GID); err != nil {
				return spec, err
			}
		}
	}
	return spec, writeReadable(filepath.Join(in, "broker.json"), data)
}

// services starts the further containers, fresh.
func (a *App) services(ctx context.Context, key string) error {
	for _, s := range a.Services {
		name := BoxName(a.ID, "svc-"+s.Name)
		box := sandbox.Box{
			Name: name, Image: s.Image, Env: s.Env, Loose: true, Limits: a.Box, Labels: a.labels(key, "service"),
			Reach: sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: a.Site.Network("app"), Aliases: []string{s.Name}}}},
		}
		if _, err := a.Engine.Create(ctx, box); err != nil {
			return fmt.Errorf("service %q: %w", s.Name, err)
		}
		if err := a.Engine.Start(ctx, name); err != nil {
			return fmt.Errorf("service %q: %w", s.Name, err)
		}
	}
	return nil
}

// volumes makes the tree that the app will see: a copy-on-write view of the
// source, or an empty volume that fill copies the tree into.
func (a *App) volumes(ctx context.Context, key string) error {
	scratch := sandbox.Volume{Name: a.scratch(), Labels: a.labels(key, "volume")}
	if err := a.Engine.EnsureVolume(ctx, scratch); err != nil {
		return err
	}
	if a.Copy != "overlay" {
		return nil
	}
	return a.Engine.EnsureVolume(ctx, sandbox.Volume{Name: a.tree(), Labels: a.labels(key, "volume"), Lower: a.Project.Src, Upper: a.scratch()})
}

func (a *App) boxFor(key, holder string) sandbox.Box {
	tree := sandbox.Mount{What: sandbox.Tree, Source: a.tree(), Target: dirs.Src}
	if a.Copy != "overlay" {
		tree.Source = a.scratch()
	}
	dir := a.dir(key)
	return sandbox.Box{
		Name: a.box(), Image: a.Image, User: fmt.Sprintf("%d:%d", a.UID, a.GID), Dir: dirs.Src,
		Argv: []string{dirs.Bin + "/" + dirs.HelperBroker, dirs.Broker},
		Env:  append([]string{"HOME=" + dirs.Home, "LANG=C.UTF-8"}, a.Env...),
		Mounts: []sandbox.Mount{
			tree,
			{What: sandbox.Empty, Source: a.Project.Empty(), Target: dirs.Src + "/.git", ReadOnly: true},
			{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: dirs.In, ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: dirs.Events},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: dirs.AppLog},
		},
		Tmpfs: tmpfs(Builder), Reach: sandbox.Reach{Join: holder}, Limits: a.Box, Labels: a.labels(key, "app"),
	}
}

// fill copies the tree in where the engine cannot look at it in place.
func (a *App) fill(ctx context.Context) error {
	if a.Copy == "overlay" {
		return nil
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(a.Tree(w)) }()
	defer r.Close()
	return a.Engine.CopyIn(ctx, a.box(), dirs.Src, r)
}

func (a *App) labels(key, kind string) map[string]string {
	return map[string]string{
		sandbox.LabelProject: a.ID, sandbox.LabelKind: kind, sandbox.LabelPhase: strconv.Itoa(a.Site.Phase), sandbox.LabelCall: key,
		sandbox.LabelDeadline: strconv.FormatInt(a.Spec.Deadline, 10),
	}
}

// await follows the broker's events until the app is ready or has failed.
func (a *App) await(ctx context.Context, key string, up Up) (Up, error) {
	events := filepath.Join(a.dir(key), "events")
	begun := time.Now()
	for {
		seen, err := readEvents(events)
		if err != nil {
			return up, err
		}
		if e, ok := decided(seen, a.Spec.App == nil); ok {
			return a.settled(key, up, e, begun), nil
		}
		st, err := a.Engine.Status(ctx, a.box())
		if err != nil {
			return up, err
		}
		if st.State == sandbox.Exited {
			return up, fmt.Errorf("the app's container ended with exit code %d before it said a word%s", st.ExitCode, a.words(ctx))
		}
		select {
		case <-ctx.Done():
			return up, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// words is the end of the app container's own log, which only a fault of abl's fills.
func (a *App) words(ctx context.Context) string {
	data, err := a.Engine.Logs(ctx, a.box(), 500)
	if text := strings.TrimSpace(string(data)); err == nil && text != "" {
		return ": " + text
	}
	return ""
}

func (a *App) settled(key string, up Up, e dirs.Event, begun time.Time) Up {
	say := event.Event{Time: time.Now().UTC(), Kind: event.AppReady, Phase: a.Site.Phase, Call: key, MS: time.Since(begun).Milliseconds()}
	if e.Event == "failed" {
		up.Failed = e.Detail
		say.Kind, say.Text = event.AppFailed, e.Detail
	}
	a.Out.Emit(say)
	return up
}

// decided finds the broker's first word on readiness; without an app section
// listening is all there is to wait for.
func decided(events []dirs.Event, idle bool) (dirs.Event, bool) {
	for _, e := range events {
		if e.Event == "ready" || e.Event == "failed" || idle && e.Event == "listening" {
			return e, true
		}
	}
	return dirs.Event{}, false
}

func readEvents(path string) ([]dirs.Event, error) {
	f, err := openOutput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, err
	}
	var seen []dirs.Event
	for _, line := range bytes.Split(data, []byte("\n")) {
		var e dirs.Event
		if json.Unmarshal(line, &e) == nil && e.Event != "" {
			seen = append(seen, e)
		}
	}
	return seen, nil
}

// Down removes the app, its services and its volumes.
func (a *App) Down(ctx context.Context) error {
	var errs []error
	names := []string{a.box()}
	for _, s := range a.Services {
		names = append(names, BoxName(a.ID, "svc-"+s.Name))
	}
	for _, name := range names {
		errs = append(errs, a.Engine.Remove(ctx, name))
	}
	_, err := a.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: a.ID, sandbox.LabelKind: "volume"}, nil)
	return errors.Join(append(errs, err)...)
}
