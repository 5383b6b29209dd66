package scaffold

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"abl/internal/config"
	"abl/internal/spec"
	"abl/internal/testing/audittest"
	"abl/prompts"

	"github.com/google/go-cmp/cmp"
)

func show(p Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "stack %s guessed=%t src %s\n", p.Stack, p.Guessed, p.Src)
	for _, op := range p.Ops {
		b.WriteString(op.String() + "\n")
	}
	return b.String()
}

func TestMake(t *testing.T) {
	fresh := "write .abl/config.yaml\nwrite .abl/project.md\nwrite .abl/specs/phase1.md\nwrite .env.example\nwrite .abl/config.schema.json\n"
	image := "write .abl/images/builder.Dockerfile\n"
	texts := "write prompts/builder.md\nwrite prompts/verifier.md\n"
	tests := []struct {
		name    string
		project fstest.MapFS
		o       Plan
		want    string
	}{
		{"an empty directory", fstest.MapFS{}, Plan{},
			"stack node guessed=true src src\n" + fresh + image + texts + "add 8 lines to .gitignore\n"},
		{"no stack", fstest.MapFS{}, Plan{Stack: "none"},
			"stack none guessed=false src src\n" + fresh + texts + "add 8 lines to .gitignore\n"},
		{"the stack is found", fstest.MapFS{"go.mod": {}}, Plan{},
			"stack go guessed=false src src\n" + fresh + texts + "add 8 lines to .gitignore\n"},
		{"what is there is kept", fstest.MapFS{".abl/config.yaml": {}, "prompts/builder.md": {}, ".env.example": {Mode: fs.ModeSymlink, Data: []byte("nowhere")}, ".gitignore": {Data: []byte("/src\n.env\n*.log\n")}},
			Plan{Stack: "python"},
			"stack python guessed=false src src\nkeep .abl/config.yaml\nwrite .abl/project.md\nwrite .abl/specs/phase1.md\nkeep .env.example\nwrite .abl/config.schema.json\n" +
				image + "keep prompts/builder.md\nwrite prompts/verifier.md\nadd 6 lines to .gitignore\n"},
		{"other files", fstest.MapFS{"main.c": {}}, Plan{},
			"stack none guessed=true src src\n" + fresh + texts + "add 8 lines to .gitignore\n"},
		{"a repository", fstest.MapFS{"package.json": {}}, Plan{Repo: "."},
			"stack node guessed=false src .abl/work/src\n" + fresh + image + texts + "add 8 lines to .gitignore\n"},
		{"another src", fstest.MapFS{}, Plan{Stack: "none", Src: "backend/app"},
			"stack none guessed=false src backend/app\n" + fresh + texts + "add 8 lines to .gitignore\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Make(t.Context(), tt.project, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, show(p)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The version is that of the project's own files, where it is one that abl has.
func TestVersionIsTheProjects(t *testing.T) {
	for _, tt := range []struct{ name, file, text, want string }{
		{"a module", "go.mod", "module x\n\ngo 1.26.1\n\ntoolchain go1.27.0\n", `toolchain: {go: "1.26"}`},
		{"an old module", "go.mod", "go 1.21\n", `toolchain: {go: "1.27"}`},
		{"engines", "package.json", `{"engines": {"npm": "11", "node": ">= 24.1 <25"}, "node": "26"}`, `toolchain: {node: "24"}`},
		{"other engines", "package.json", `{"engines": {"node": "18"}}`, `# toolchain: {node: "24"}`},
		{"a Python", ".python-version", "3.11.9\n", `toolchain: {python: "3.11"}`},
		{"the next Python", ".python-version", "3.12\n", `toolchain: {python: "3.13"}`},
		{"no Python that can be had", ".python-version", "3.99\n", `# toolchain: {python: "3.13"}`},
		{"a crate", "Cargo.toml", "[package]\nrust-version = \"1.70\"\n", `toolchain: {rust: "1.85"}`},
		{"a Maven build", "pom.xml", "<project><release>17</release></project>", `toolchain: {java: "17"}`},
		{"no regular file", ".python-version", "", `# toolchain: {python: "3.13"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			project := fstest.MapFS{tt.file: {Data: []byte(tt.text)}}
			if tt.file == ".python-version" {
				project["setup.py"] = &fstest.MapFile{}
			}
			if tt.text == "" {
				project[tt.file].Mode = fs.ModeNamedPipe
			}
			p, err := Make(t.Context(), project, Plan{})
			if err != nil {
				t.Fatal(err)
			}
			if settings := string(p.Ops[0].Data); !strings.Contains(settings, "\n"+tt.want+"\n") || (p.Version != "") != (tt.file == p.File) {
				t.Errorf("version: got %q from %q in\n%s\nwant %s", p.Version, p.File, settings, tt.want)
			}
		})
	}
}

func TestMakeErrors(t *testing.T) {
	tests := []struct {
		name    string
		project fstest.MapFS
		o       Plan
		want    string
	}{
		{"above", fstest.MapFS{}, Plan{Src: "../x"}, `cannot use "../x"`},
		{"absolute", fstest.MapFS{}, Plan{Src: "/x"}, `cannot use "/x"`},
		{"abl's own", fstest.MapFS{}, Plan{Src: ".abl/src"}, `cannot use ".abl/src"`},
		{"the project itself", fstest.MapFS{}, Plan{Src: "."}, `cannot use "."`},
		{"a pattern", fstest.MapFS{}, Plan{Src: "a*"}, `cannot use "a*"`},
		{"an option", fstest.MapFS{}, Plan{Src: "-x"}, `cannot use "-x"`},
		{"the prompts", fstest.MapFS{}, Plan{Src: "Prompts/x"}, `cannot use "Prompts/x"`},
		{"no regular .gitignore", fstest.MapFS{".gitignore": {Mode: fs.ModeNamedPipe}}, Plan{}, "cannot add lines to .gitignore: it is not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Make(t.Context(), tt.project, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func initialise(t *testing.T, dir string, o Plan) Plan {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p, err := Make(t.Context(), root.FS(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(root, p.Ops); err != nil {
		t.Fatal(err)
	}
	return p
}

// tree is every file with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The files of init are a valid project: configuration, spec, prompts.
func TestEveryStackIsAProject(t *testing.T) {
	for i, stack := range slices.Repeat(Stacks(), len(Kinds())) {
		kind := Kinds()[i/len(Stacks())]
		t.Run(stack+" "+kind, func(t *testing.T) {
			dir := t.TempDir()
			initialise(t, dir, Plan{Stack: stack, Kind: kind, Src: "code"})
			loaded, err := config.Load(dir, func(string) (string, bool) { return "", false }, nil)
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Directories.Src != "code" || (loaded.App == nil) != (!slices.Contains([]string{"node", "python", "go"}, stack) && kind == "http") {
				t.Errorf("settings: got %+v, want the sources in code, and an app except for http of other stacks",
					loaded.Config)
			}
			if app := loaded.App; app != nil && (app.Kind != kind || (app.Port == 0) != (kind == "command")) {
				t.Errorf("app: got %+v, want the kind %s, and a port unless it is a command", app, kind)
			}
			tools := strings.Join(loaded.Toolchain.Names(), ", ")
			if slices.Contains([]string{"go", "rust", "java"}, stack) && !strings.HasPrefix(tools, stack+" ") {
				t.Errorf("got the toolchain %q, want %s", tools, stack)
			}
			if set, _ := spec.LoadDir(filepath.Join(dir, ".abl/specs")); len(set.Lint()) > 0 {
				t.Errorf("findings in the spec: got %v, want none", set.Lint())
			}
			files := tree(t, dir)
			fitsItsSchema(t, dir, files)
			s, problems := spec.Parse("phase1.md", []byte(files[".abl/specs/phase1.md"]), 1)
			if len(problems) > 0 || len(s.Contracts) < 3 || len(s.Contracts) > 4 {
				t.Errorf("spec: got %d contracts, problems %v, want 3 or 4 and none", len(s.Contracts), problems)
			}
			for name, text := range files {
				if strings.Contains(text, "@") && !strings.HasPrefix(name, "prompts/") && name != schemaFile {
					t.Errorf("%s: got a place that was not filled in, want none", name)
				}
			}
			for _, role := range []string{"builder", "verifier"} {
				if text, err := prompts.Choose(role, []byte(files["prompts/"+role+".md"])); err != nil || text != prompts.Default(role) {
					t.Errorf("prompt of the %s: got %q, error %v, want the default", role, text, err)
				}
			}
			_, dockerfile := files[".abl/images/builder.Dockerfile"]
			if named := loaded.Images.Builder.Dockerfile != ""; named && !dockerfile {
				t.Errorf("Dockerfile %s of the settings: got none, want one", loaded.Images.Builder.Dockerfile)
			}
		})
	}
}

// fitsItsSchema reads the settings as an editor does, with the keys that they offer in
// comments, too.
func fitsItsSchema(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	text := files[configFile]
	if first, _, _ := strings.Cut(text, "\n"); first != "# yaml-language-server: $schema=./"+path.Base(schemaFile) {
		t.Errorf("first line: got %s, want the one that names the schema", first)
	}
	offered := regexp.MustCompile(`(?m)^# (\w+:|  )`).ReplaceAllString(text, "$1")
	for _, text := range []string{text, offered} {
		if err := os.WriteFile(filepath.Join(dir, configFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(dir, func(string) (string, bool) { return "", false }, nil); err != nil {
			t.Errorf("settings: got error %v, want none in\n%s", err, text)
		}
		doc, err := audittest.FromYAML(configFile, []byte(text))
		if wrong := audittest.Violations([]byte(files[schemaFile]), doc); err != nil || len(wrong) > 0 {
			t.Errorf("violations of the schema: got %v, error %v, want none in\n%s", wrong, err, text)
		}
	}
}

func TestTwiceIsOnce(t *testing.T) {
	dir := t.TempDir()
	initialise(t, dir, Plan{Stack: "node"})
	before := tree(t, dir)
	p := initialise(t, dir, Plan{})
	for _, op := range p.Ops {
		if op.Kind != Keep {
			t.Errorf("second run: got the operation %s, want only kept files", op)
		}
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("second run: got changes, want none (-first +second)\n%s", diff)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	mine := map[string]string{".abl/config.yaml": "version: 1\n", "prompts/verifier.md": "mine", ".env.example": "", ".gitignore": "*.log\r\n/src/"}
	for name, text := range mine {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	initialise(t, dir, Plan{})
	after := tree(t, dir)
	mine[".gitignore"] += "\r\n\r\n# abl\r\n.env\r\n.abl/state.json\r\n.abl/lock\r\n.abl/logs/\r\n.abl/reports/\r\n.abl/project_map.txt\r\n.abl/tests/\r\n"
	for name, text := range mine {
		t.Run(name, func(t *testing.T) {
			if after[name] != text {
				t.Errorf("%s: got %q, want %q", name, after[name], text)
			}
		})
	}
	if info, err := os.Stat(filepath.Join(dir, ".gitignore")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of .gitignore: got %v, error %v, want 0600", info.Mode(), err)
	}
}

// A file that appears between the plan and its execution is kept.
func TestApplyKeepsNewFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.WriteFile("a", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Apply(root, []Op{{Kind: Write, Path: "a", Data: []byte("abl's")}, {Kind: Write, Path: "b", Data: []byte("whole")}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "mine", "b": "whole"}, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A link that leads out of the project is neither followed nor replaced.
func TestApplyStaysInside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "prompts")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p, err := Make(t.Context(), root.FS(), Plan{})
	if err == nil {
		err = Apply(root, p.Ops)
	}
	if err == nil {
		t.Error("write through a link: got no error, want one")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("files written outside: got %v, want none", entries)
	}
}
