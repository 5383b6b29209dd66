package sandboxtest

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/sandbox"
)

// Subject is an engine under test, with commands that its containers can run.
type Subject struct {
	Engine  sandbox.Engine
	Image   string
	Missing string // an image reference that the engine does not have
	Project string // value of the project label, and the prefix of every name
	User    string
	Pool    string
	Exit    func(code string) []string // ends with this exit code
	Print   func(text string) []string // prints text and ends with 0
	Block   []string                   // runs until it is stopped
}

// Conform checks that an engine behaves as documented in package sandbox.
func Conform(t *testing.T, setup func(*testing.T) Subject) {
	cases := map[string]func(*testing.T, Subject){
		"created is not ended":     createdIsNotEnded,
		"exit codes":               exitCodes,
		"wait before the end":      waitBeforeTheEnd,
		"wait gives up":            waitGivesUp,
		"a name is a mutex":        nameIsMutex,
		"start twice":              startTwice,
		"after the end":            afterTheEnd,
		"gone":                     gone,
		"refused":                  refused,
		"list by labels":           listByLabels,
		"last of the log":          lastOfTheLog,
		"first of the log":         firstOfTheLog,
		"as intended":              asIntended,
		"join a holder":            joinHolder,
		"networks and volumes":     ensureTwice,
		"sweep spares what it may": sweepSpares,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, setup(t)) })
	}
}

func (s Subject) labels(kind string) map[string]string {
	return map[string]string{sandbox.LabelProject: s.Project, sandbox.LabelKind: kind}
}

func (s Subject) container(name string, argv []string) sandbox.ContainerConfig {
	return sandbox.ContainerConfig{
		Name:   sandbox.Name(s.Project, name),
		Image:  s.Image,
		Labels: s.labels("role"),
		User:   s.User,
		Argv:   argv,
	}
}

func (s Subject) create(t *testing.T, b sandbox.ContainerConfig) string {
	t.Helper()
	if _, err := s.Engine.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b.Name
}

func (s Subject) start(t *testing.T, b sandbox.ContainerConfig) string {
	t.Helper()
	name := s.create(t, b)
	must(t, s.Engine.Start(t.Context(), name))
	return name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error: got %v, want %v", err, want)
	}
}

func wantSay(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error: got %v, want one with %q", err, text)
	}
}

func (s Subject) wantState(t *testing.T, name string, want sandbox.State) {
	t.Helper()
	got, err := s.Engine.Status(t.Context(), name)
	must(t, err)
	if got.State != want {
		t.Errorf("state of %q: got %s, want %s", name, got.State, want)
	}
}

func (s Subject) wantExit(t *testing.T, name string, want sandbox.Exit) {
	t.Helper()
	got, err := s.Engine.Wait(t.Context(), name)
	must(t, err)
	if got != want {
		t.Errorf("exit of %q: got %+v, want %+v", name, got, want)
	}
}

func wantNames(t *testing.T, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func with(labels map[string]string, key, value string) map[string]string {
	labels = maps.Clone(labels)
	labels[key] = value
	return labels
}
