package archtest

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestThisModule(t *testing.T) {
	wrong, err := Check(os.DirFS("../../.."), "abl")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// A stale exception would allow the reads of a later file with the same name.
func TestExceptionsNameExistingFiles(t *testing.T) {
	for name := range readers {
		if _, err := os.Stat("../../../" + name); err != nil {
			t.Errorf("%s in archtest.readers: got %v, want an existing file; remove the entry", name, err)
		}
	}
}

// TestCheckReadsTheModule checks that TestThisModule does not pass because it read nothing.
func TestCheckReadsTheModule(t *testing.T) {
	files, err := parse(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.dir] = true
	}
	for _, dir := range []string{
		".", "cmd/abl", "orchestrator", "internal/sandbox/docker", "roles",
		"internal/testing/archtest",
	} {
		if !seen[dir] {
			t.Errorf("files read in %s: got none, want some", dir)
		}
	}
}

// module returns a module with one file per package. files maps each path to its imports.
func module(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, imports := range files {
		var src strings.Builder
		src.WriteString("// Package p has imports.\npackage p\n")
		for imp := range strings.FieldsSeq(imports) {
			src.WriteString("import _ \"" + imp + "\"\n")
		}
		out[name] = &fstest.MapFile{Data: []byte(src.String())}
	}
	return out
}

func TestAllowedImports(t *testing.T) {
	good := map[string]string{
		"abl.go":                  "embed",
		"cmd/abl/main.go":         "context abl abl/orchestrator abl/internal/sandbox/docker golang.org/x/term",
		"cmd/internal/cli/cli.go": "github.com/urfave/cli/v2",
		"orchestrator/loop.go": "context abl/roles abl/roles/agent abl/internal/sandbox " +
			"abl/internal/testing/failpoint",
		"orchestrator/loop_test.go":  "abl/internal/sandbox/docker github.com/google/go-cmp/cmp",
		"internal/ledger/l.go":       "github.com/gocarina/gocsv golang.org/x/sys/unix",
		"internal/sandbox/config.go": "",
		"internal/sandbox/docker/d":  "",
		"internal/sandbox/docker/d.go": "github.com/docker/docker/client github.com/docker/docker/api/types " +
			"abl/internal/sandbox",
		"internal/testing/sandboxtest/s.go": "abl/internal/sandbox github.com/google/go-cmp/cmp",
		"internal/git/w.go":                 "github.com/go-git/go-git/v5 abl/internal/git/scan",
		"e2e/lab/l.go":                      "abl/examples github.com/creack/pty",
		"roles/runner.go":                   "abl/internal/sandbox abl/images abl/prompts abl/internal/redact",
		"internal/yamlfile/y.go":            "go.yaml.in/yaml/v3",
		"internal/config/c.go":              "abl/internal/yamlfile",
		"testdata/bad.go":                   "abl/nowhere",
		"orchestrator/docs/other/go.mod":    "",
		"orchestrator/docs/other/o.go":      "github.com/else/where",
	}
	if wrong, err := Check(module(good), "abl"); err != nil || len(wrong) > 0 {
		t.Errorf("got %v, error %v, want no violations", wrong, err)
	}
}

func TestForbiddenImports(t *testing.T) {
	tests := []struct{ file, imports, want string }{
		{"orchestrator/loop.go", "abl/internal/sandbox/docker", "orchestrator may not import internal/sandbox/docker"},
		{"orchestrator/loop.go", "abl/internal/git", "orchestrator may not import internal/git"},
		{"orchestrator/loop.go", "abl/internal/broker", "orchestrator may not import internal/broker"},
		{"orchestrator/loop.go", "golang.org/x/sys/unix", "orchestrator may not import golang.org/x/sys/unix"},
		{
			"orchestrator/learner/l.go",
			"github.com/docker/docker/client",
			"orchestrator/learner may not import github.com/docker/docker/client",
		},
		{"internal/git/w.go", "abl/internal/sandbox/docker", "internal/git may not import internal/sandbox/docker"},
		{"internal/sandbox/docker/d.go", "abl/internal/git", "internal/sandbox/docker may not import internal/git"},
		{"internal/broker/b.go", "abl/roles", "internal/broker may not import roles"},
		{"internal/state/s.go", "abl/orchestrator", "internal/state may not import orchestrator"},
		{"internal/spec/s.go", "abl/roles/agent", "internal/spec may not import roles/agent"},
		{"internal/state/s.go", "go.yaml.in/yaml/v3", "internal/state may not import go.yaml.in/yaml/v3"},
		{"roles/r.go", "abl/orchestrator", "roles may not import orchestrator"},
		{"roles/r.go", "abl/internal/git", "roles may not import internal/git"},
		{"roles/agent/a.go", "abl/cmd/abl", "roles/agent may not import cmd/abl"},
		{"roles/agent/a.go", "github.com/google/go-cmp/cmp", "roles/agent may not import github.com/google/go-cmp/cmp"},
		{"internal/config/c.go", "abl/internal/git", "internal/config may not import internal/git"},
		{"images/i.go", "abl/roles", "images may not import roles"},
		{"internal/config/c.go", "abl", "internal/config may not import ."},
		{"internal/config/c.go", "go.yaml.in/yaml/v3", "internal/config may not import go.yaml.in/yaml/v3"},
		{"cmd/abl/main.go", "github.com/urfave/cli/v2", "cmd/abl may not import github.com/urfave/cli/v2"},
		{"cmd/abl/main_test.go", "github.com/docker/docker/client", "cmd/abl may not import github.com/docker/docker/client"},
		{"cmd/abl/main.go", "example.com/new/thing", "cmd/abl may not import example.com/new/thing"},
		{"prompts/p.go", "abl/internal/redact", "prompts may not import internal/redact"},
		{"somewhere/s.go", "abl/internal/redact", "somewhere may not import internal/redact"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			wrong, err := Check(module(map[string]string{tt.file: tt.imports}), "abl")
			want := []string{tt.want + " (" + tt.file + ")"}
			if diff := cmp.Diff(want, wrong); err != nil || diff != "" {
				t.Errorf("want - got +, error %v\n%s", err, diff)
			}
		})
	}
}

func TestViolations(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"roles/a.go", "package p\n", "roles has no package comment"},
		{
			"roles/a.go",
			"// Package p.\npackage p\nfunc init() {}\n",
			"roles/a.go:3: init() runs before main can refuse; call it",
		},
		{
			"cmd/abl/a_test.go",
			"package p\nfunc init() {}\n",
			"cmd/abl/a_test.go:2: init() runs before main can refuse; call it",
		},
		{
			"roles/a.go",
			"// Package p.\npackage p\nimport \"context\"\nvar c = context.Background()\n",
			"roles/a.go:4: context.Background cannot be cancelled; take the caller's",
		},
		{
			"roles/a.go",
			"// Package p.\npackage p\nimport \"context\"\nvar c = f(context.TODO)\n",
			"roles/a.go:4: context.TODO cannot be cancelled; take the caller's",
		},
		{
			"roles/a.go",
			"// Package p.\npackage p\nimport \"os\"\nvar f, _ = os.ReadFile(\"x\")\n",
			"roles/a.go:4: os.ReadFile may follow a link that an agent made: " +
				"use internal/hostfs, or give the reason in archtest.readers",
		},
		{
			"internal/helper/wire.go",
			"// Package p.\npackage p\n",
			"internal/helper/wire.go no longer opens files directly: remove it from archtest.readers",
		},
		{
			"images/a.go",
			"// Package p.\npackage p\nimport \"os/exec\"\nvar c = exec.Command(\"x\")\n",
			"images/a.go:4: exec.Command gives abl's secrets to another program; use internal/proc",
		},
		{
			"internal/broker/program.go",
			"// Package p.\npackage p\n",
			"internal/broker/program.go no longer starts programs directly: remove it from archtest.starting",
		},
		{
			"cmd/abl/a.go",
			"// Package p.\npackage p\nimport \"os\"\nvar w = os.Stdout\n",
			"cmd/abl/a.go:4: os.Stdout bypasses redaction; use cli.Input",
		},
		{
			"cmd/abl/a.go",
			"// Package p.\npackage p\nvar w = in.Bare.Stdout\n",
			"cmd/abl/a.go:3: Bare bypasses redaction; use cli.Input",
		},
		{
			"cmd/internal/look/open.go",
			"// Package p.\npackage p\n",
			"cmd/internal/look/open.go no longer bypasses cli.Input: remove it from archtest.printing",
		},
		{
			"roles/a.go",
			"// Package p.\npackage p\n" + strings.Repeat("\n", maxLines),
			"roles/a.go has 502 lines, more than 500",
		},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			wrong, err := Check(fstest.MapFS{tt.name: {Data: []byte(tt.src)}}, "abl")
			if diff := cmp.Diff([]string{tt.want}, wrong); err != nil || diff != "" {
				t.Errorf("want - got +, error %v\n%s", err, diff)
			}
		})
	}
	for name, src := range map[string]string{
		"cmd/abl/main.go":             "// Package main.\npackage main\nimport \"context\"\nvar c = context.Background()\n",
		"roles/a_test.go":             "package p\nimport \"context\"\nvar c = context.Background()\n",
		"roles/b.go":                  "// Package p.\npackage p\ntype t struct{}\nfunc (t) init() {}\n",
		"internal/helper/wire.go":     "// Package p.\npackage p\nimport \"os\"\nvar f, _ = os.ReadFile(\"x\")\n",
		"internal/testing/lab/lab.go": "// Package p.\npackage p\nimport \"os/exec\"\nvar c = exec.Command(\"x\")\n",
		"images/a.go":                 "// Package p.\npackage p\nimport \"os\"\nvar f, _ = os.ReadFile(\"x\")\n",
	} {
		if wrong, err := Check(fstest.MapFS{name: {Data: []byte(src)}}, "abl"); err != nil || len(wrong) > 0 {
			t.Errorf("%s: got %v, error %v, want no violations", name, wrong, err)
		}
	}
}

func TestInvalidSource(t *testing.T) {
	if _, err := Check(fstest.MapFS{"a.go": {Data: []byte("pakage")}}, "abl"); err == nil {
		t.Error("file that cannot be parsed: got no error, want one")
	}
}
