package examples_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"abl"
	"abl/internal/config"
	"abl/internal/spec"
	"abl/roles/agent"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(abl.Demo(), name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func specs(t *testing.T) []spec.Spec {
	t.Helper()
	var all []spec.Spec
	for n := 1; n <= 2; n++ {
		name := fmt.Sprintf(".abl/specs/phase%d.md", n)
		s, problems := spec.Parse(name, read(t, name), n)
		for _, p := range problems {
			t.Errorf("%s: got problem %s, want none", name, p)
		}
		all = append(all, s)
	}
	return all
}

// script returns the scenario with the texts of all its files.
func script(t *testing.T) agent.Scenario {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, abl.Demo()); err != nil {
		t.Fatal(err)
	}
	s, err := agent.Parse("scenario.yaml", read(t, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range s.Calls {
		if s.Calls[i], err = c.Resolve(dir); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestSpecsHaveTheirContracts(t *testing.T) {
	all := specs(t)
	if got := len(all[0].Contracts); got != 9 {
		t.Errorf("phase 1: got %d contracts, want 9", got)
	}
	if got := len(all[1].Contracts); got != 5 {
		t.Errorf("phase 2: got %d contracts, want 5", got)
	}
}

// Every contract has one saved test. The test's title is the exact contract, because
// failed_specs.md quotes it.
func TestEveryContractHasATest(t *testing.T) {
	title := regexp.MustCompile(`(?m)^  '(P(\d+)\.C\d+) (.+)': async`)
	tests := map[string]string{}
	for _, call := range script(t).Calls {
		for _, step := range call.Steps {
			for _, m := range title.FindAllStringSubmatch(step.Text, -1) {
				if m[2] != fmt.Sprint(call.Phase) {
					t.Errorf("phase of the test of %s: got %d, want %s", m[1], call.Phase, m[2])
				}
				tests[m[1]] = m[3]
			}
		}
	}
	for _, s := range specs(t) {
		for _, c := range s.Contracts {
			if tests[c.ID] != c.Says() {
				t.Errorf("title of the test of %s: got\n%q, want\n%q", c.ID, tests[c.ID], c.Says())
			}
			delete(tests, c.ID)
		}
	}
	for id := range tests {
		t.Errorf("got a test for %s, want tests for contracts only", id)
	}
}

// Both roles have a scripted call for each iteration of both phases, however often abl calls
// them.
func TestScenarioHasEveryCall(t *testing.T) {
	s := script(t)
	for _, role := range []string{"builder", "verifier"} {
		for phase := 1; phase <= 2; phase++ {
			for iteration := 1; iteration <= 5; iteration++ {
				for attempt := 1; attempt <= 3; attempt++ {
					if _, ok := s.Pick(role, phase, iteration, attempt); !ok {
						t.Errorf("got no call for the %s of phase %d, iteration %d, attempt %d, want one",
							role, phase, iteration, attempt)
					}
				}
			}
		}
	}
}

// The Gemini CLI refuses these texts in every shell command, and its file tools refuse build
// files. A scripted model plays the same scenario with it.
func TestCommandsSuitEveryShellTool(t *testing.T) {
	for _, call := range script(t).Calls {
		for _, step := range call.Steps {
			for _, bad := range []string{"$(", "`", "<("} {
				if strings.Contains(step.Run, bad) {
					t.Errorf("command of a step: got %q, want one without %s", step.Run, bad)
				}
			}
			switch path.Base(step.Path()) {
			case "package.json", "package-lock.json", "Makefile", "Dockerfile", "go.mod", "pyproject.toml":
				t.Errorf("file of a step: got %s, want no build file", step.Path())
			}
		}
	}
}

func TestEveryFileIsUsed(t *testing.T) {
	data := string(read(t, "scenario.yaml"))
	err := fs.WalkDir(abl.Demo(), "play", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(data, "from: "+filepath.ToSlash(name)+"\n") {
			t.Errorf("%s: got no use in the scenario, want one", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigIsValid(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, abl.Demo()); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(dir, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := loaded.Config
	if c.Agent.Builder != "scripted" || c.Agents["scripted"].Scenario != "scenario.yaml" || c.App.Port != 3000 {
		t.Errorf("config of the demo: got %+v, want scripted, its scenario and port 3000", c)
	}
}
