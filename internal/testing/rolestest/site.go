// Package rolestest helps tests of calls, apps and replays: a project on an engine in memory.
package rolestest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/sandboxtest"
)

// Limits are all set, as those of a container have to be.
var Limits = sandbox.Limits{Memory: 1, CPUs: 1, Pids: 1, FileSize: 1, OpenFile: 1}

// Site is a project with empty workspaces on an engine in memory.
type Site struct {
	*testing.T
	Engine  *sandboxtest.Engine
	Project state.Project

	mu     sync.Mutex
	events []state.Event
}

// NewSite creates a Site.
func NewSite(t *testing.T) *Site {
	t.Helper()
	s := &Site{T: t, Engine: &sandboxtest.Engine{}, Project: state.NewProject(t.TempDir(), "src", ".abl/tests")}
	for _, dir := range []string{s.Project.Src + "/.git", s.Project.Tests + "/.git", s.Project.Calls(), s.Project.Specs()} {
		Must(t, os.MkdirAll(dir, 0o755))
	}
	return s
}

// Out returns a sink for the events of the site.
func (s *Site) Out() state.Sink {
	return state.Func(func(e state.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	})
}

// Events returns the events so far.
func (s *Site) Events() []state.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Kinds returns the kinds of the events so far, with the texts of the agent's actions.
func (s *Site) Kinds() string {
	var all []string
	for _, e := range s.Events() {
		word := string(e.Kind)
		if e.Kind == state.Action {
			word += ":" + e.Text
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// WantLeft fails the test if the engine has other objects than these.
func (s *Site) WantLeft(names ...string) {
	s.Helper()
	if got := s.Engine.Left(); !slices.Equal(got, names) {
		s.Errorf("objects on the engine: got %q, want %q", got, names)
	}
}

// Prints writes an agent's output as its container does. It does nothing if the test has ended and its
// folder is gone.
func Prints(b sandbox.ContainerConfig, text string) {
	err := os.WriteFile(sandboxtest.Host(b, helper.Out), []byte(text), 0o644)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
}

// Says returns an agent that prints text and ends.
func Says(text string, code int) sandboxtest.Script {
	return func(b sandbox.ContainerConfig) sandbox.Exit {
		Prints(b, text)
		return sandbox.Exit{Code: code}
	}
}

// Cancelled returns a context that has ended.
func Cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Must ends the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Write writes a file and creates its folders.
func Write(t *testing.T, path, text string) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(t, os.WriteFile(path, []byte(text), 0o644))
}
