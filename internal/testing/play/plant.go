package play

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/sandboxtest"
)

// Plant is a project whose phase fails once and then passes, with the scripts of its containers
// on the in-memory engine.
type Plant struct {
	testing.TB
	Dir    string
	Engine *sandboxtest.Engine
	Easy   bool                          // the phase passes at once
	Worked func(sandbox.ContainerConfig) // called after a role or a replay has finished its work, unless nil
}

// NewPlant creates the project in the folder that ABL_TEST_MEMORY names, or in a temporary
// folder. Its engine runs Plant.Play in every container.
func NewPlant(t testing.TB) *Plant {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("ABL_TEST_MEMORY"), "abl-plant")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return NewPlantIn(t, dir)
}

// NewPlantIn creates the project in dir.
func NewPlantIn(t testing.TB, dir string) *Plant {
	t.Helper()
	p := &Plant{TB: t, Dir: dir, Engine: &sandboxtest.Engine{}}
	p.Engine.Scripts = map[string]sandboxtest.Script{"": p.Play}
	for _, name := range []string{"src", ".abl/tests", ".abl/logs/calls", ".abl/specs"} {
		if err := os.MkdirAll(filepath.Join(p.Dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const contract = "# Phase 1: A word\n\n## Context\n\nA word.\n\n## Contracts\n\n- read word.txt → right\n"
	if err := os.WriteFile(filepath.Join(p.Dir, ".abl/specs/phase1.md"), []byte(contract), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := state.Save(filepath.Join(p.Dir, ".abl/state.json"), state.New(p.Dir)); err != nil {
		t.Fatal(err)
	}
	return p
}

// Play is the script of every container. It depends on the container's kind.
func (p *Plant) Play(b sandbox.ContainerConfig) sandbox.Exit {
	kind := b.Labels[sandbox.LabelKind]
	if p.Worked != nil && (kind == "role" || kind == "replay") {
		defer p.Worked(b)
	}
	switch {
	case kind == "role" && b.Labels[sandbox.LabelRole] == "builder":
		return p.Builds(b)
	case kind == "role":
		return p.verifies(b)
	case kind == "replay":
		return p.replays(b)
	case kind == "app":
		Add(b, helper.Events, "{\"event\":\"listening\"}\n")
	case kind == "stand-in":
		p.Engine.Print(b.Name, "{\"ready\":\":1\"}\n")
	}
	<-p.Context().Done() // runs until it is stopped
	return sandbox.Exit{}
}

// moment is the duration of an agent's work. A supervisor can be killed during it.
const moment = 5 * time.Millisecond

// step returns the step of the call that a container belongs to.
func step(b sandbox.ContainerConfig) (n int) {
	attempt := 0
	for _, form := range []string{"p1-build-%d.%d", "p1-verify-%d.%d"} {
		if _, err := fmt.Sscanf(b.Labels[sandbox.LabelCall], form, &n, &attempt); err == nil {
			return n
		}
	}
	panic("no call: " + b.Labels[sandbox.LabelCall])
}

// Add appends a line to a file in a container. A call that runs twice leaves one line too many.
func Add(b sandbox.ContainerConfig, path, text string) {
	name := sandboxtest.Host(b, path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		panic(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		panic(err)
	}
}

// Builds is the work of a Builder.
func (p *Plant) Builds(b sandbox.ContainerConfig) sandbox.Exit {
	n := step(b)
	time.Sleep(moment)
	p.Engine.WhileRunning(b.Name, func() {
		Add(b, helper.Src+"/log.txt", fmt.Sprintf("builder %d\n", n))
		Add(b, helper.Src+"/word.txt", map[bool]string{true: "wrong\n", false: "right\n"}[n == 1 && !p.Easy])
		Add(b, fmt.Sprintf("%s/builder_reports/phase1_v%d_done.md", helper.Src, n), "done\n")
	})
	time.Sleep(moment)
	return sandbox.Exit{}
}

func (p *Plant) verifies(b sandbox.ContainerConfig) sandbox.Exit {
	n := step(b)
	time.Sleep(moment)
	p.Engine.WhileRunning(b.Name, func() {
		Add(b, helper.Tests+"/log.txt", fmt.Sprintf("verifier %d\n", n))
		if n == 1 {
			Add(b, helper.Tests+"/run.sh", "tests\n")
		}
		if n == 1 && !p.Easy {
			Add(b, helper.Tests+"/failed_specs.md", "SPEC: read word.txt → right\nINPUT: word.txt\nOBSERVED: wrong\n")
		}
		Add(b, fmt.Sprintf("%s/verifier_reports/phase1_v%d_done.md", helper.Tests, n), "done\n")
	})
	time.Sleep(moment)
	return sandbox.Exit{}
}

// replays prints the test results: ok for each test if the app is correct.
func (p *Plant) replays(b sandbox.ContainerConfig) sandbox.Exit {
	verdict := "not ok 1 - P1.C1\n  ---\n  input: word.txt\n  observed: wrong\n  ...\n"
	right := p.Easy || strings.Contains(b.Labels[sandbox.LabelCall], "p1-verify-2.")
	if strings.HasPrefix(b.Labels[sandbox.LabelRole], "replay-app") && right {
		verdict = "ok 1 - P1.C1\n"
	}
	Add(b, helper.Out, "1..1\n"+verdict)
	return sandbox.Exit{}
}
