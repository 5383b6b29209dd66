package sandboxtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"abl/internal/sandbox"
)

func createdIsNotEnded(t *testing.T, s Subject) {
	name := s.create(t, s.container("a", s.Exit("0")))
	s.wantState(t, name, sandbox.Created)
	_, err := s.Engine.Wait(t.Context(), name)
	wantSay(t, err, "never started")
}

func exitCodes(t *testing.T, s Subject) {
	for code, want := range map[string]int{"0": 0, "7": 7} {
		name := s.start(t, s.container("exit-"+code, s.Exit(code)))
		s.wantExit(t, name, sandbox.Exit{Code: want})
		got, err := s.Engine.Status(t.Context(), name)
		must(t, err)
		if got.State != sandbox.Exited || got.ExitCode != want || got.StartedAt.IsZero() || got.FinishedAt.IsZero() {
			t.Errorf("status after exit %s: got %+v, want %s with code %d and both times",
				code, got, sandbox.Exited, want)
		}
		s.wantExit(t, name, sandbox.Exit{Code: want}) // and again, long after the end
	}
}

func waitBeforeTheEnd(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Block))
	s.wantState(t, name, sandbox.Running)
	ended := make(chan error, 1)
	var exit sandbox.Exit
	go func() {
		var err error
		exit, err = s.Engine.Wait(t.Context(), name)
		ended <- err
	}()
	must(t, s.Engine.Stop(t.Context(), name, time.Minute))
	must(t, <-ended)
	if want := (sandbox.Exit{Code: 143}); exit != want {
		t.Errorf("exit of a stopped container: got %+v, want %+v", exit, want)
	}
}

func waitGivesUp(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Block))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Engine.Wait(ctx, name)
	wantErr(t, err, context.Canceled)
	s.wantState(t, name, sandbox.Running)
}

func nameIsMutex(t *testing.T, s Subject) {
	container := s.container("a", s.Exit("0"))
	id, err := s.Engine.Create(t.Context(), container)
	must(t, err)
	_, err = s.Engine.Create(t.Context(), container)
	wantErr(t, err, sandbox.ErrExists)
	wantSay(t, err, id)
}

func startTwice(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Block))
	must(t, s.Engine.Start(t.Context(), name))
	must(t, s.Engine.Stop(t.Context(), name, time.Minute))
	s.wantExit(t, name, sandbox.Exit{Code: 143})
}

func afterTheEnd(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Exit("7")))
	s.wantExit(t, name, sandbox.Exit{Code: 7})
	must(t, s.Engine.Stop(t.Context(), name, time.Second))
	s.wantExit(t, name, sandbox.Exit{Code: 7})
}

func gone(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Block))
	must(t, s.Engine.Remove(t.Context(), name))
	must(t, s.Engine.Remove(t.Context(), name))
	_, err := s.Engine.Status(t.Context(), name)
	wantErr(t, err, sandbox.ErrNotFound)
	_, err = s.Engine.Wait(t.Context(), name)
	wantErr(t, err, sandbox.ErrNotFound)
	_, err = s.Engine.Logs(t.Context(), name, 10)
	wantErr(t, err, sandbox.ErrNotFound)
	wantErr(t, s.Engine.Start(t.Context(), name), sandbox.ErrNotFound)
	wantErr(t, s.Engine.Stop(t.Context(), name, 0), sandbox.ErrNotFound)
}

func refused(t *testing.T, s Subject) {
	cases := map[string]struct {
		change func(*sandbox.ContainerConfig)
		err    error
		say    string
	}{
		"uid 0":       {change: func(b *sandbox.ContainerConfig) { b.User = "0:1000" }, say: "a uid other than 0"},
		"uid 00":      {change: func(b *sandbox.ContainerConfig) { b.User = "00:1000" }, say: "a uid other than 0"},
		"loose uid 0": {change: func(b *sandbox.ContainerConfig) { b.User, b.Loose = "0:0", true }, say: "a uid other than 0"},
		"no user":     {change: func(b *sandbox.ContainerConfig) { b.User = "" }, say: "user"},
		"a user name": {change: func(b *sandbox.ContainerConfig) { b.User = "root" }, say: "user"},
		"no command":  {change: func(b *sandbox.ContainerConfig) { b.Argv = nil }, say: "command is missing"},
		"no labels":   {change: func(b *sandbox.ContainerConfig) { b.Labels = nil }, say: sandbox.LabelProject},
		"no image":    {change: func(b *sandbox.ContainerConfig) { b.Image = s.Missing }, err: sandbox.ErrNoImage},
		"two reaches": {
			change: func(b *sandbox.ContainerConfig) {
				b.Reach.Join, b.Reach.Endpoints = "x", []sandbox.Endpoint{{Network: "y"}}
			},
			say: "join",
		},
		"no network": {change: func(b *sandbox.ContainerConfig) {
			b.Reach.Endpoints = []sandbox.Endpoint{{Network: sandbox.Name(s.Project, "none")}}
		}, say: "network"},
		"the host's": {
			change: func(b *sandbox.ContainerConfig) { b.Reach.Endpoints = []sandbox.Endpoint{{Network: "host"}} },
			say:    "network",
		},
		"the host's with an own": {
			change: func(b *sandbox.ContainerConfig) { b.Reach = sandbox.Reach{Host: true, Join: "x"} },
			say:    "may have no",
		},
		"the host's with a mount": {
			change: func(b *sandbox.ContainerConfig) {
				b.Reach.Host, b.Mounts = true, []sandbox.Mount{{What: sandbox.Specs, Source: "/etc", Target: "/s"}}
			},
			say: "may have no",
		},
		"the host's with privileges": {
			change: func(b *sandbox.ContainerConfig) { b.Reach.Host, b.Seals = true, true },
			say:    "may have no",
		},
		"no volume": {change: func(b *sandbox.ContainerConfig) {
			b.Mounts = []sandbox.Mount{{What: sandbox.Scratch, Source: sandbox.Name(s.Project, "none"), Target: "/v"}}
		}, say: "volume"},
		"a short path": {
			change: func(b *sandbox.ContainerConfig) {
				b.Mounts = []sandbox.Mount{{What: sandbox.Specs, Source: "specs", Target: "/s"}}
			},
			say: "absolute",
		},
		"dots": {change: func(b *sandbox.ContainerConfig) {
			b.Mounts = []sandbox.Mount{{What: sandbox.Specs, Source: "/a/../b", Target: "/s"}}
		}, say: "absolute"},
	}
	for name, c := range cases {
		container := s.container("a", s.Exit("0"))
		c.change(&container)
		_, err := s.Engine.Create(t.Context(), container)
		if c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: got error %v, want %v", name, err, c.err)
		}
		wantSay(t, err, c.say)
		_, err = s.Engine.Status(t.Context(), container.Name)
		wantErr(t, err, sandbox.ErrNotFound)
	}
}

func listByLabels(t *testing.T, s Subject) {
	for _, name := range []string{"b", "a", "c"} {
		container := s.container(name, s.Exit("0"))
		container.Labels = with(container.Labels, sandbox.LabelRole, map[string]string{"a": "builder", "b": "builder", "c": ""}[name])
		s.create(t, container)
	}
	other := s.container("d", s.Exit("0"))
	s.create(t, other)
	a, b := sandbox.Name(s.Project, "a"), sandbox.Name(s.Project, "b")
	c, d := sandbox.Name(s.Project, "c"), sandbox.Name(s.Project, "d")
	for _, want := range []struct {
		labels map[string]string
		names  []string
	}{
		{s.labels("role"), []string{a, b, c, d}},
		{with(s.labels("role"), sandbox.LabelRole, ""), []string{a, b, c}},
		{with(s.labels("role"), sandbox.LabelRole, "builder"), []string{a, b}},
		{with(s.labels("role"), sandbox.LabelRole, "build"), nil},
	} {
		list, err := s.Engine.List(t.Context(), want.labels)
		must(t, err)
		var names []string
		for _, container := range list {
			names = append(names, container.Name)
		}
		wantNames(t, names, want.names)
	}
}

func lastOfTheLog(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Print("first and last")))
	s.wantExit(t, name, sandbox.Exit{})
	for max, want := range map[int64]string{100: "first and last", 4: "last"} {
		got, err := s.Engine.Logs(t.Context(), name, max)
		must(t, err)
		if string(got) != want {
			t.Errorf("last %d bytes of the log: got %q, want %q", max, got, want)
		}
	}
}

func firstOfTheLog(t *testing.T, s Subject) {
	name := s.start(t, s.container("a", s.Print("first\nsecond\n")))
	for max, want := range map[int64]string{100: "first\n", 3: "fir"} {
		got, err := s.Engine.Head(t.Context(), name, max)
		must(t, err)
		if string(got) != want {
			t.Errorf("first line of at most %d bytes: got %q, want %q", max, got, want)
		}
	}
	torn := s.start(t, s.container("b", s.Print("torn")))
	got, err := s.Engine.Head(t.Context(), torn, 100)
	must(t, err)
	if string(got) != "torn" {
		t.Errorf("head of a container that ended in the middle of a line: got %q, want %q", got, "torn")
	}
	_, err = s.Engine.Head(t.Context(), s.create(t, s.container("c", s.Block)), 100)
	wantSay(t, err, "never started")
	_, err = s.Engine.Head(t.Context(), sandbox.Name(s.Project, "gone"), 100)
	wantErr(t, err, sandbox.ErrNotFound)
	silent := s.start(t, s.container("d", s.Block))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Engine.Head(ctx, silent, 100)
	wantErr(t, err, context.Canceled)
}

func asIntended(t *testing.T, s Subject) {
	container := s.container("a", s.Block)
	container.Env = []string{"A=b=c"}
	s.create(t, container)
	proof, err := s.Engine.Prove(t.Context(), container)
	must(t, err)
	must(t, proof.Err())
	st, err := s.Engine.Status(t.Context(), container.Name)
	must(t, err)
	if st.Env["A"] != "b=c" {
		t.Errorf("environment: got %q, want A=b=c", st.Env)
	}
	meant := container
	meant.Limits.Memory = 1 << 30
	proof, err = s.Engine.Prove(t.Context(), meant)
	must(t, err)
	wantErr(t, proof.Err(), sandbox.ErrUnproven)
	s.startName(t, container.Name)
	proof, err = s.Engine.Prove(t.Context(), container)
	must(t, err)
	wantErr(t, proof.Err(), sandbox.ErrUnproven) // a program that has run may have changed anything
	_, err = s.Engine.Prove(t.Context(), s.container("gone", s.Block))
	wantErr(t, err, sandbox.ErrNotFound)
	outside := s.container("outside", s.Block)
	outside.Reach.Host = true
	s.create(t, outside)
	proof, err = s.Engine.Prove(t.Context(), outside)
	must(t, errors.Join(err, proof.Err()))
	outside.Reach.Host = false
	proof, err = s.Engine.Prove(t.Context(), outside)
	must(t, err)
	wantErr(t, proof.Err(), sandbox.ErrUnproven)
}

func joinHolder(t *testing.T, s Subject) {
	holder := s.start(t, s.container("holder", s.Block))
	joined := s.container("a", s.Exit("7"))
	joined.Reach.Join = holder
	s.wantExit(t, s.start(t, joined), sandbox.Exit{Code: 7})
	must(t, s.Engine.Stop(t.Context(), holder, 0))
	late := s.container("b", s.Exit("7"))
	late.Reach.Join = holder
	if err := s.Engine.Start(t.Context(), s.create(t, late)); err == nil {
		t.Error("start of a container that joins an ended one: got no error, want one")
	}
	s.wantState(t, late.Name, sandbox.Created)
}

func ensureTwice(t *testing.T, s Subject) {
	n := sandbox.Network{Name: sandbox.Name(s.Project, "n"), Labels: s.labels("network"), Pool: s.Pool}
	v := sandbox.Volume{Name: sandbox.Name(s.Project, "v"), Labels: s.labels("volume")}
	for range 2 {
		must(t, s.Engine.EnsureNetwork(t.Context(), n))
		must(t, s.Engine.EnsureVolume(t.Context(), v))
	}
	open := n
	open.Egress = true
	wantSay(t, s.Engine.EnsureNetwork(t.Context(), open), "different isolation")
	n.Labels = with(n.Labels, sandbox.LabelProject, s.Project+"-other")
	v.Labels = with(v.Labels, sandbox.LabelProject, s.Project+"-other")
	wantSay(t, s.Engine.EnsureNetwork(t.Context(), n), "does not belong to this project")
	wantSay(t, s.Engine.EnsureVolume(t.Context(), v), "does not belong to this project")
}

func sweepSpares(t *testing.T, s Subject) {
	for _, name := range []string{"v1", "v2"} {
		must(t, s.Engine.EnsureVolume(t.Context(), sandbox.Volume{
			Name:   sandbox.Name(s.Project, name),
			Labels: s.labels("volume"),
		}))
	}
	for _, name := range []string{"n1", "n2"} {
		must(t, s.Engine.EnsureNetwork(t.Context(), sandbox.Network{
			Name:   sandbox.Name(s.Project, name),
			Labels: s.labels("network"),
			Pool:   s.Pool,
		}))
	}
	kept := s.container("kept", s.Exit("0")) // never started, because the engine removes the network of a stopped container
	kept.Mounts = []sandbox.Mount{{What: sandbox.Scratch, Source: sandbox.Name(s.Project, "v1"), Target: "/v"}}
	kept.Reach.Endpoints = []sandbox.Endpoint{{Network: sandbox.Name(s.Project, "n1")}}
	s.create(t, kept)
	running := s.start(t, s.container("running", s.Block))
	foreign := s.container("foreign", s.Exit("0"))
	foreign.Labels = with(foreign.Labels, sandbox.LabelProject, s.Project+"-other")
	s.create(t, foreign)
	t.Cleanup(func() { must(t, s.Engine.Remove(context.WithoutCancel(t.Context()), foreign.Name)) })

	theirs := s.container("theirs", s.Exit("0")) // another program's container, with the label and a different name
	theirs.Name = "their-" + s.Project
	s.create(t, theirs)
	t.Cleanup(func() { must(t, s.Engine.Remove(context.WithoutCancel(t.Context()), theirs.Name)) })

	ours := map[string]string{sandbox.LabelProject: s.Project}
	removed, err := s.Engine.Sweep(t.Context(), ours, func(b sandbox.Status) bool { return b.Name == kept.Name })
	must(t, err)
	wantNames(t, removed, []string{running, sandbox.Name(s.Project, "v2"), sandbox.Name(s.Project, "n2")})
	s.wantExit(t, s.startName(t, kept.Name), sandbox.Exit{})

	removed, err = s.Engine.Sweep(t.Context(), ours, nil)
	must(t, err)
	wantNames(t, removed, []string{kept.Name, sandbox.Name(s.Project, "v1"), sandbox.Name(s.Project, "n1")})
	s.wantState(t, foreign.Name, sandbox.Created)
	s.wantState(t, theirs.Name, sandbox.Created)
	_, err = s.Engine.Sweep(t.Context(), nil, nil)
	wantSay(t, err, "without a project's label")
}

func (s Subject) startName(t *testing.T, name string) string {
	t.Helper()
	must(t, s.Engine.Start(t.Context(), name))
	return name
}
