package scaffold

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"abl/internal/config"
	"abl/internal/detect"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files of testdata/repos")

// sample returns a repository of testdata/repos. Lines such as "dir: backend" before the first file
// are the user's choices.
func sample(t *testing.T, file string) (fstest.MapFS, *detect.Tree, Plan) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	project, p := fstest.MapFS{}, Plan{Repo: "."}
	var paths []string
	for _, f := range archive.Files {
		project[f.Name] = &fstest.MapFile{Data: f.Data}
		paths = append(paths, f.Name)
	}
	for line := range strings.Lines(string(archive.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "dir":
			p.Dir = value
		case "kind":
			p.Kind = value
		}
	}
	read := func(name string, max int64) ([]byte, error) {
		if f := project[name]; f != nil && int64(len(f.Data)) <= max {
			return f.Data, nil
		}
		return nil, fmt.Errorf("no %s", name)
	}
	return project, detect.New(paths, read), p
}

// For each repository of testdata/repos init writes the config.yaml of testdata/golden, and abl
// accepts it.
func TestRepositories(t *testing.T) {
	files, err := filepath.Glob("testdata/repos/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("repositories: got %d, error %v, want 20 or more", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			project, tree, p := sample(t, file)
			report := detect.Read(t.Context(), tree, p.Dir, detect.Wish{Stack: p.Stack, Kind: p.Kind})
			p.Detected = &report
			p, err := Make(t.Context(), project, p)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata/golden", filepath.Base(file))
			got := output(p)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
			accepted(t, p)
		})
	}
}

// output returns the files of a plan that depend on the repository.
func output(p Plan) []byte {
	var a txtar.Archive
	for _, op := range p.Ops {
		switch {
		case op.Path == configFile:
			_, text, _ := strings.Cut(string(op.Data), "version: 1\n")
			a.Files = append(a.Files, txtar.File{Name: "config.yaml", Data: []byte(strings.TrimSpace(text) + "\n")})
		case op.Kind == Write && path.Base(op.Path) == "builder.Dockerfile" && len(p.Detected.Packages) > 0:
			a.Files = append(a.Files, txtar.File{Name: "builder.Dockerfile", Data: op.Data})
		}
	}
	notes := fmt.Sprintf("stack %s, kind %s\n", p.Stack, p.Kind)
	for _, o := range p.Detected.Open {
		notes += "open: " + o.Key + ": " + o.Why + "\n"
	}
	for _, n := range p.Detected.Notes {
		notes += "note: " + n + "\n"
	}
	for _, n := range p.Detected.Ignore {
		notes += "ignore: " + n + "\n"
	}
	a.Files = append(a.Files, txtar.File{Name: "notes", Data: []byte(notes)})
	return txtar.Format(&a)
}

// accepted loads the settings of a plan as abl does.
func accepted(t *testing.T, p Plan) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Apply(root, p.Ops); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(dir, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if complete := p.Detected.Get("app.command") != "" && p.Kind != ""; (loaded.App != nil) && !complete {
		t.Errorf("got an app section, want a comment: %+v", loaded.App)
	}
}
