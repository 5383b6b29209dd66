package boundary

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/images"
	"abl/internal/helper"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
)

// wrongs are intents that abl must not use for a Verifier. The probe inside the container also finds
// those with an inside check.
var wrongs = map[string]struct {
	bend   func(*wrong, *sandbox.ContainerConfig)
	inside string // the check that finds it from inside
}{
	"src at its own path":   {func(w *wrong, b *sandbox.ContainerConfig) { w.mount(b, w.Src, "/workspace/src") }, "what must be absent"},
	"src at another path":   {func(w *wrong, b *sandbox.ContainerConfig) { w.mount(b, w.Src, "/opt") }, "other mounts"},
	"src in place of tests": {func(w *wrong, b *sandbox.ContainerConfig) { w.replace(b, "/workspace/tests", w.Src, false) }, "identity of /workspace/tests"},
	"the whole project":     {func(w *wrong, b *sandbox.ContainerConfig) { w.mount(b, w.Project.Root, "/opt") }, "other mounts"},
	"specs to be written":   {func(w *wrong, b *sandbox.ContainerConfig) { w.replace(b, "/workspace/specs", w.Specs(), false) }, "writing in /workspace/specs"},
	".git to be written": {func(w *wrong, b *sandbox.ContainerConfig) {
		w.replace(b, "/workspace/tests/.git", w.Tests+"/.git", false)
	}, "writing in /workspace/tests/.git"},
	".git not covered":    {func(w *wrong, b *sandbox.ContainerConfig) { w.drop(b, "/workspace/tests/.git") }, "writing in /workspace/tests/.git"},
	".env":                {func(w *wrong, b *sandbox.ContainerConfig) { w.file(b, w.Env(), "/abl/out/more") }, "other mounts"},
	"the engine's socket": {func(w *wrong, b *sandbox.ContainerConfig) { w.file(b, "/var/run/docker.sock", "/run/docker.sock") }, "sockets of engines"},
	"the other role's network": {func(w *wrong, b *sandbox.ContainerConfig) {
		b.Reach = w.JoinPlace(PlaceBuilder)
	}, "addresses on other networks"},
	"a second network": {func(w *wrong, b *sandbox.ContainerConfig) {
		b.Reach.Through = append(b.Reach.Through, w.Reach(PlaceBuilder).Endpoints...)
	}, ""},
	"the host's network": {func(_ *wrong, b *sandbox.ContainerConfig) {
		b.Reach = sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: "host", Foreign: true}}}
	}, ""},
	"uid 0":                    {func(_ *wrong, b *sandbox.ContainerConfig) { b.User = "0:4711" }, ""},
	"gid 0":                    {func(_ *wrong, b *sandbox.ContainerConfig) { b.User = "4711:0" }, ""},
	"no limit on memory":       {func(_ *wrong, b *sandbox.ContainerConfig) { b.Limits.Memory = 0 }, ""},
	"no limit on processes":    {func(_ *wrong, b *sandbox.ContainerConfig) { b.Limits.Pids = 0 }, ""},
	"a service's capabilities": {func(_ *wrong, b *sandbox.ContainerConfig) { b.Loose = true }, ""},
	"a holder's capabilities":  {func(_ *wrong, b *sandbox.ContainerConfig) { b.Seals = true }, ""},
	"a key in its environment": {func(_ *wrong, b *sandbox.ContainerConfig) { b.Env = append(b.Env, "K=swordfish-swordfish") }, ""},
	"memory without a limit":   {func(_ *wrong, b *sandbox.ContainerConfig) { b.Tmpfs[0].Size = 0 }, ""},
}

// wrong is a project on a real engine with a Verifier's container.
type wrong struct {
	state.Project
	*Containers
	engine *docker.Engine
	image  string
}

func (w *wrong) mount(b *sandbox.ContainerConfig, source, target string) {
	b.Mounts = append(b.Mounts, sandbox.Mount{What: sandbox.Workspace, Source: source, Target: target})
}

func (w *wrong) file(b *sandbox.ContainerConfig, source, target string) {
	b.Mounts = append(b.Mounts, sandbox.Mount{What: sandbox.CallOut, Source: source, Target: target})
}

func (w *wrong) drop(b *sandbox.ContainerConfig, target string) {
	for i, m := range b.Mounts {
		if m.Target == target {
			b.Mounts = append(b.Mounts[:i:i], b.Mounts[i+1:]...)
			return
		}
	}
}

func (w *wrong) replace(b *sandbox.ContainerConfig, target, source string, readOnly bool) {
	for i, m := range b.Mounts {
		if m.Target == target {
			b.Mounts[i] = sandbox.Mount{What: sandbox.Workspace, Source: source, Target: target, ReadOnly: readOnly}
		}
	}
}

func newWrong(t *testing.T) *wrong {
	t.Helper()
	lab.Engine(t)
	eng, err := docker.Connect(t.Context(), os.Getenv)
	rolestest.Must(t, err)
	m := &images.Maker{Engine: eng, Env: lab.Env(t)}
	holder, err := m.Holder(t.Context())
	rolestest.Must(t, err)
	image, err := m.Ensure(t.Context(), images.Want{Agent: images.Tools})
	rolestest.Must(t, err)
	root, err := state.Real(t.TempDir())
	rolestest.Must(t, err)
	rolestest.Must(t, os.Chmod(root, 0o755))
	p := state.NewProject(root, "src", ".abl/tests")
	for _, dir := range []string{p.Src + "/.git", p.Tests + "/.git", p.Specs(), p.Calls()} {
		rolestest.Must(t, os.MkdirAll(dir, 0o755))
		rolestest.Must(t, os.Chmod(dir, 0o777)) // the mount alone keeps a role out
	}
	rolestest.Write(t, p.Env(), "KEY=swordfish-swordfish\n")
	rolestest.Write(t, filepath.Join(p.Specs(), "phase1.md"), "x")
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 4711, 4711
	}
	id := "wrong-" + strings.ToLower(rand.Text()[:10])
	containers := &Containers{
		Engine: eng, ID: id, UID: uid, GID: gid, Root: os.Geteuid() == 0, Helper: holder, Pool: "10.231.0.0/16", Port: 3000, Safe: &redact.Sanitizer{},
		Inodes: true, // the engine of these tests runs on this machine
		Limits: sandbox.Limits{Memory: 256 << 20, CPUs: 1, Pids: 64, FileSize: 1 << 20, OpenFile: 256},
	}
	t.Cleanup(func() {
		_, err := eng.Sweep(context.WithoutCancel(t.Context()), map[string]string{sandbox.LabelProject: id}, nil)
		rolestest.Must(t, errors.Join(err, eng.Close()))
	})
	containers.Safe.Hide("swordfish-swordfish")
	w := &wrong{Project: p, Containers: containers, engine: eng, image: image}
	rolestest.Must(t, errors.Join(containers.Holder(t.Context(), PlaceVerifier), containers.Holder(t.Context(), PlaceBuilder)))
	return w
}

// made describes a Verifier's container, bends the description and creates the container. An
// engine's adapter may refuse a bent description; then there is no container.
func (w *wrong) made(t *testing.T, bend func(*wrong, *sandbox.ContainerConfig)) (Launcher, bool) {
	t.Helper()
	rec, deadline := roles.Record{Dir: w.Call("c")}, time.Now().Add(time.Minute)
	container := w.Worker("c", w.image, PlaceVerifier, w.Labels("role", "verifier", "c", deadline))
	container.Argv, container.Dir = []string{helper.Bin + "/" + helper.HelperRun, helper.Run}, helper.Tests
	container.Mounts, container.Tmpfs = roles.Mounts(roles.Verifier, w.Project, rec), (roles.Spaces{}).Tmpfs(roles.Verifier)
	run := helper.RunSpec{
		Argv: []string{"true"}, Dir: helper.Tests, Stdout: helper.Out, Stderr: helper.Err, Probe: helper.Probe,
		Deadline: deadline.Unix(),
	}
	rolestest.Must(t, errors.Join(os.MkdirAll(rec.Dir, 0o755), WriteInput(rec, nil, map[string]any{"run.json": run}),
		w.CreateFiles(rec.Stdout(), rec.Stderr()), w.engine.Remove(t.Context(), container.Name)))
	bend(w, &container)
	_, err := w.engine.Create(t.Context(), container)
	return Launcher{
		Containers: w.Containers, Project: w.Project, Config: container, Dir: rec.Dir,
		Rule: RoleRule(roles.Verifier, w.Project, w.ID, rec.Dir, true), Secrets: w.Safe,
	}, err == nil
}

// TestWrongIntentsAreRefused creates a container for each wrong intent on a real engine. The proof
// must refuse it before the start, and the probe must find what is visible inside.
func TestWrongIntentsAreRefused(t *testing.T) {
	w := newWrong(t)
	right, ok := w.made(t, func(*wrong, *sandbox.ContainerConfig) {})
	err := right.before(t.Context())
	if err != nil || !ok {
		t.Fatalf("right intent: got created %v, error %v, want true and none", ok, err)
	}
	rolestest.Must(t, w.engine.Start(t.Context(), right.Config.Name))
	if err := right.ReadProof(t.Context(), true); err != nil {
		t.Fatalf("right intent from inside: got error %v, want none", err)
	}
	w.refusesAnotherVolume(t)
	for name, c := range wrongs {
		p, made := w.made(t, c.bend)
		if made {
			err := p.before(t.Context())
			if !errors.Is(err, sandbox.ErrUnproven) {
				t.Errorf("%s: got error %v, want %v", name, err, sandbox.ErrUnproven)
			}
		} else if p.Rule.Check(p.Config).Err() == nil && !p.Config.Seals {
			t.Errorf("%s: got a refusal by the adapter, want one by the rule too", name)
		}
		if c.inside != "" {
			w.seen(t, name, c.inside, p)
		}
	}
}

// refusesAnotherVolume creates a replay's container with the volume of the app's source.
func (w *wrong) refusesAnotherVolume(t *testing.T) {
	t.Helper()
	tree := w.Name("app-tree")
	rolestest.Must(t, w.engine.EnsureVolume(t.Context(), sandbox.Volume{Name: tree, Labels: w.Labels("volume", PlaceApp, "c", time.Now().Add(time.Minute))}))
	container := w.Worker("r", w.image, PlaceVerifier, w.Labels("replay", "r", "c", time.Now().Add(time.Minute)))
	container.Tmpfs, container.Argv = (roles.Spaces{}).Tmpfs(roles.Verifier), []string{"true"}
	dir := w.Call("c")
	container.Mounts = append(roles.OutputMounts(roles.Record{Dir: dir}), sandbox.Mount{What: sandbox.Scratch, Source: tree, Target: "/workspace"})
	_, err := w.engine.Create(t.Context(), container)
	rolestest.Must(t, err)
	p := Launcher{Containers: w.Containers, Project: w.Project, Dir: dir, Config: container, Rule: ReplayRule(w.Project, w.ID, dir, "r", PlaceVerifier, true)}
	if err := p.before(t.Context()); !errors.Is(err, sandbox.ErrUnproven) || !strings.Contains(err.Error(), "mount /workspace is") {
		t.Errorf("replay with the app's volume: got error %v, want %v with %q",
			err, sandbox.ErrUnproven, "mount /workspace is")
	}
	rolestest.Must(t, w.engine.Remove(t.Context(), container.Name))
}

// TestRuleOfNetworks checks that no rule allows the network of the engine's machine.
func TestRuleOfNetworks(t *testing.T) {
	for name, c := range map[string]struct {
		reach sandbox.Reach
		want  bool
	}{
		"no network":   {sandbox.Reach{}, true},
		"the machine":  {sandbox.Reach{Host: true}, false},
		"other names":  {sandbox.Reach{Resolve: true}, false},
		"some network": {sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: "n"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Rule{id: "id"}).reach(c.reach); got.OK != c.want {
				t.Errorf("got %+v, want %t", got, c.want)
			}
		})
	}
}

// TestVolumesHaveAnIdentity checks that a container gets only its own volume, for the purpose in the
// rule.
func TestVolumesHaveAnIdentity(t *testing.T) {
	p := state.NewProject("/project", "src", ".abl/tests")
	volume := func(what sandbox.What, name, target string) sandbox.Mount {
		return sandbox.Mount{What: what, Source: name, Target: target}
	}
	rules := map[string]Rule{
		"replay": ReplayRule(p, "id", "/dir", "r1", "r1", true),
		"build":  BuildRule("id", "/dir", "b1", nil, false),
		"app":    AppRule(p, "id", "/dir", "app-r1", false),
		"copied": AppRule(p, "id", "/dir", "app-r1", true),
	}
	for name, c := range map[string]struct {
		rule string
		has  sandbox.Mount
		ok   bool
	}{
		"a replay's own":              {"replay", volume(sandbox.Scratch, "abl-id-r1", "/workspace"), true},
		"a replay's with another's":   {"replay", volume(sandbox.Scratch, "abl-id-r2", "/workspace"), false},
		"a replay's with the source":  {"replay", volume(sandbox.Scratch, "abl-id-app-tree", "/workspace"), false},
		"a replay's with the sockets": {"replay", volume(sandbox.Sockets, "abl-id-sockets-app", "/workspace"), false},
		"another project's":           {"replay", volume(sandbox.Scratch, "abl-other-r1", "/workspace"), false},
		"a build's own":               {"build", volume(sandbox.Scratch, "abl-id-b1", "/workspace"), true},
		"a build's with the source":   {"build", volume(sandbox.Scratch, "abl-id-app-tree", "/workspace"), false},
		"an app's own":                {"app", volume(sandbox.Tree, "abl-id-app-r1-tree", "/workspace/src"), true},
		"an app's with another's":     {"app", volume(sandbox.Tree, "abl-id-app-tree", "/workspace/src"), false},
		"an app's with tests":         {"app", volume(sandbox.Tree, "abl-id-r1", "/workspace/src"), false},
		"an app's copy":               {"copied", volume(sandbox.Tree, "abl-id-app-r1-scratch", "/workspace/src"), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules[c.rule]
			var mounts []sandbox.Mount
			for _, m := range r.mounts {
				if !m.What.IsVolume() {
					mounts = append(mounts, m)
				}
			}
			labels := map[string]string{sandbox.LabelProject: "id", sandbox.LabelKind: "build"}
			container := sandbox.ContainerConfig{Name: "abl-id-b", Image: "i", User: "1:1", Argv: []string{"x"}, Labels: labels, Mounts: append(mounts, c.has)}
			e := &sandboxtest.Engine{}
			rolestest.Must(t, e.EnsureVolume(t.Context(), sandbox.Volume{Name: c.has.Source, Labels: labels}))
			_, err := e.Create(t.Context(), container)
			proof, perr := e.Prove(t.Context(), r.Expected(container))
			rolestest.Must(t, errors.Join(err, perr))
			if got := proof.Err(); (got == nil) != c.ok {
				t.Errorf("got error %v, want none: %v", got, c.ok)
			}
		})
	}
}

// seen starts a container that the proof refuses, and checks that the probe inside reports it.
func (w *wrong) seen(t *testing.T, name, check string, p Launcher) {
	t.Helper()
	proof, err := w.engine.Prove(t.Context(), p.Config)
	if err = errors.Join(err, proof.Err()); err != nil {
		t.Errorf("%s: got error %v for the container as created, want none", name, err)
	}
	st, err := w.engine.Status(t.Context(), p.Config.Name)
	rolestest.Must(t, errors.Join(err, os.RemoveAll(filepath.Join(p.Dir, "boundary.json")), p.writeProbeSpec(st.Env), w.engine.Start(t.Context(), p.Config.Name)))
	if err := p.ReadProof(t.Context(), true); !errors.Is(err, sandbox.ErrUnproven) {
		t.Errorf("%s: got error %v from inside, want %v", name, err, sandbox.ErrUnproven)
	}
	b, _, err := roles.Record{Dir: p.Dir}.Boundary()
	if c, ok := b.Inside.Get(check); err != nil || !ok || c.OK {
		t.Errorf("%s: got check %q inside %+v, error %v, want it to fail; failed checks: %+v",
			name, check, c, err, b.Inside.Failed())
	}
}

// The rule allows only the Builder on the network of its services.
func TestOnlyTheBuilderHasTrials(t *testing.T) {
	p := state.NewProject("/project", "src", ".abl/tests")
	s := &Containers{ID: "id", Trial: true, Gated: map[string]bool{PlaceBuilder: true}}
	for name, c := range map[string]struct {
		role   roles.Role
		holder string
		ok     bool
	}{
		"the-Builder":          {roles.Builder, PlaceBuilder, true},
		"the-Verifier":         {roles.Verifier, PlaceVerifier, false},
		"a-call-that-is-alone": {roles.Role{NoSpecs: true}, PlaceBuilder, false},
	} {
		t.Run(name, func(t *testing.T) {
			reach := Join(s.HolderName(c.holder), s.Reach(PlaceBuilder))
			got := RoleRule(c.role, p, "id", "dir", true).reach(reach)
			if got.OK != c.ok {
				t.Errorf("got %+v, want ok %t", got, c.ok)
			}
		})
	}
}
