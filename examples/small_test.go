package examples_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"abl/internal/config"
	"abl/internal/spec"
	"abl/roles/agent"
)

// Each project other than the demo is complete: its settings and specs are valid, its scenario
// uses every file of play/, and its tests name every contract.
func TestSmallProjects(t *testing.T) {
	dirs, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if !d.IsDir() || d.Name() == "demo" {
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			if _, err := config.Load(d.Name(), func(string) (string, bool) { return "", false }, nil); err != nil {
				t.Error(err)
			}
			files := os.DirFS(d.Name())
			text := func(name string) string {
				data, err := fs.ReadFile(files, name)
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			scenario := text("scenario.yaml")
			s, err := agent.Parse("scenario.yaml", []byte(scenario))
			if err != nil {
				t.Fatal(err)
			}
			tests := ""
			for _, c := range s.Calls {
				c, err := c.Resolve(d.Name())
				if err != nil {
					t.Fatal(err)
				}
				for _, step := range c.Steps {
					if c.Role == "verifier" {
						tests += step.Text
					}
				}
			}
			contracts, problems := spec.Parse("phase1.md", []byte(text(".abl/specs/phase1.md")), 1)
			if len(problems) > 0 || len(contracts.Contracts) == 0 {
				t.Errorf("got %d contracts, problems %v, want 1 or more without problems", len(contracts.Contracts),
					problems)
			}
			for _, c := range contracts.Contracts {
				if !strings.Contains(tests, c.ID) {
					t.Errorf("got no test with the name %s, want one", c.ID)
				}
			}
			err = fs.WalkDir(files, "play", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && !strings.Contains(scenario, fmt.Sprintf("from: %s\n", name)) {
					t.Errorf("%s: got no use in the scenario, want one", name)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
