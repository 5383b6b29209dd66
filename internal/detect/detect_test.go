package detect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files returns a tree of texts. Reading a text that is too large fails.
func files(texts map[string]string) *Tree {
	var paths []string
	for name := range texts {
		paths = append(paths, name)
	}
	return New(paths, func(name string, max int64) ([]byte, error) {
		if text := texts[name]; int64(len(text)) <= max {
			return []byte(text), nil
		}
		return nil, errors.New("too large")
	})
}

func TestSatisfies(t *testing.T) {
	for _, tt := range []struct {
		version, text string
		want          bool
	}{
		{"22.23.3", ">=18", true},
		{"22.23.3", ">=18 <21", false},
		{"22.23.3", "^20.0.0", false},
		{"22.23.3", "^22.4", true},
		{"22.23.3", "~22.23.1", true},
		{"22.23.3", "~22.4", false},
		{"22.23.3", "18 || 22", true},
		{"22.23.3", "v22.1.0", true},
		{"22.23.3", "20", false},
		{"22.23.3", "22.x", true},
		{"22.23.3", "18 - 20", false},
		{"22.23.3", "lts/*", true},
		{"3.13", ">=3.10,<3.14", true},
		{"3.13", ">=3.10,<3.13", false},
		{"3.13", "^3.11", true},
		{"3.13", "~=3.11", true},
		{"3.13", "==3.12.*", false},
		{"3.11", "3.11.9", true},
		{"3.13", "3.12", false},
		{"3.13", "!=3.13", false},
		{"3.13", "none", false},
	} {
		t.Run(tt.version+" "+tt.text, func(t *testing.T) {
			if got := satisfies(numbers(tt.version), tt.text); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestReadImage(t *testing.T) {
	img, err := readImage("Dockerfile", `# syntax=docker/dockerfile:1
ARG VERSION=20
FROM --platform=linux/amd64 node:${VERSION}-alpine AS base
RUN <<EOF
CMD ["no"]
EOF
FROM base
WORKDIR /app
ENV PORT=8080 HOST="0.0.0.0"
ENV NAME a value
EXPOSE $PORT/tcp 9/udp
HEALTHCHECK --interval=5s \
  CMD curl -f http://localhost:8080/ready?deep=1 || exit 1
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["sh", "-c", "node server.js"]
`)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{
		img.base, img.cmd.command(), img.cmd.from.String(), img.env["NAME"].Value, img.env["HOST"].Value, img.workdir,
		capture(probed, img.health), img.ports,
	}
	want := []any{
		"node:20-alpine", "node server.js", "Dockerfile:15", "a value", "0.0.0.0", "/app",
		"/ready?deep=1", []Fact{{Key: "app.port", Value: "8080", From: Source{"Dockerfile", "11"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A hostile repository causes neither a panic nor a long wait, and no command is taken from it.
func TestHostileFiles(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1,
			i-1)
	}
	for name, texts := range map[string]map[string]string{
		"large": {"package.json": `{"scripts": {"start": "node a"}, "dependencies": {"express": "4"}}` +
			strings.Repeat(" ", 2<<20)},
		"not JSON":        {"package.json": "{", "server.js": "x"},
		"other types":     {"package.json": `{"scripts": [1], "bin": 3, "engines": "x"}`},
		"deep JSON":       {"package.json": strings.Repeat("[", 1<<19)},
		"not TOML":        {"pyproject.toml": "[[[", "Cargo.toml": "="},
		"not XML":         {"pom.xml": "<a><b>"},
		"entities":        {"pom.xml": `<!DOCTYPE x [<!ENTITY a "b">]><project><artifactId>&a;</artifactId></project>`},
		"a YAML bomb":     {"compose.yaml": bomb + "services: {a: {image: *j}}"},
		"a cycle":         {"compose.yaml": "services: &a {b: *a}"},
		"an empty FROM":   {"Dockerfile": "FROM\nFROM \\\nCMD\nEXPOSE\nENV\nFROM $X\n"},
		"a broken Go":     {"go.mod": "module x", "main.go": "package main; func {"},
		"odd dependences": {"compose.yaml": "services: {a: {build: ., depends_on: [b]}, b: {image: x, depends_on: [a]}}"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stack := range append(Stacks(), "") {
				r := Read(t.Context(), files(texts), "", Wish{Stack: stack})
				if got := r.Get("app.command"); strings.Contains(got, "node a") {
					t.Errorf("got the command %q, want none", got)
				}
			}
		})
	}
}

// Read reads only files of the tree: a compose file may name any file.
func TestComposeReadsNoOtherFile(t *testing.T) {
	var read []string
	tree := files(map[string]string{"compose.yaml": `
include: [/etc/other.yaml]
services:
  web:
    build: .
    env_file: [/etc/passwd, .env]
    label_file: /etc/passwd
    extends: {file: /etc/base.yaml, service: x}
    ports: ["${WEB:-80}:${INNER:-8000}"]
`, ".env": "INNER=1"})
	inner := tree.read
	tree.read = func(name string, max int64) ([]byte, error) {
		read = append(read, name)
		return inner(name, max)
	}
	r := Read(t.Context(), tree, "", Wish{})
	if diff := cmp.Diff([]string{"compose.yaml"}, read); diff != "" || r.Get("app.port") != "8000" {
		t.Errorf("port: got %q, notes %q, want 8000; files read (-want +got)\n%s", r.Get("app.port"), r.Notes, diff)
	}
}

func TestTreeIsBounded(t *testing.T) {
	texts := map[string]string{}
	for i := range 100 {
		texts[fmt.Sprintf("src/f%03d.js", i)] = strings.Repeat("x", maxFile)
	}
	texts["large.js"] = strings.Repeat("x", maxFile+1)
	tree := files(texts)
	if got := tree.Text("large.js"); got != "" {
		t.Errorf("text of a file of %d bytes: got %d bytes, want none", maxFile+1, len(got))
	}
	source := files(map[string]string{"large.mjs": strings.Repeat("x", maxSource+1)})
	if got := source.text("large.mjs", maxSource); got != "" {
		t.Errorf("source of %d bytes: got %d bytes, want none", maxSource+1, len(got))
	}
	if got := source.Text("large.mjs"); len(got) != maxSource+1 {
		t.Errorf("text of a file that is too large as a source: got %d bytes, want %d", len(got), maxSource+1)
	}
	total := 0
	for name := range texts {
		total += len(tree.Text(name))
	}
	if total > maxTotal {
		t.Errorf("text of all files: got %d bytes, want at most %d", total, maxTotal)
	}
}

// An address on this machine in a variable becomes the service with the usual port of the server that the
// variable names.
func TestVariablesNameServices(t *testing.T) {
	r := Read(t.Context(), files(map[string]string{
		"compose.yaml": "services: {store: {image: postgres:17}, bus: {image: nats:2}}",
		"package.json": `{"scripts": {"start": "node a.js"}, "dependencies": {"express": "5", "dotenv": "17"}}`,
		"a.js":         "require('express')().listen(3000)",
		".env.example": "DB_HOST=localhost\nNATS_HOST=127.0.0.1\nREDIS_HOST=localhost\nPGHOST=localhost\n",
	}), "", Wish{})
	want := map[string]string{"DB_HOST": "store", "NATS_HOST": "bus", "REDIS_HOST": "localhost", "PGHOST": "store"}
	for name, service := range want {
		if got := r.Get("app.env." + name); got != service {
			t.Errorf("%s: got %q, want %q", name, got, service)
		}
	}
}

// A language without an expression for servers on 127.0.0.1 gets no note about them.
func TestScanWithoutExpressions(t *testing.T) {
	p := newProject(folder{files(nil), ""}, Wish{})
	kind, from := p.scan("a", "listen", signs{})
	if kind != "" || from != (Source{}) || len(p.report.Notes) > 0 {
		t.Errorf("got %q from %q with the notes %q, want none", kind, from, p.report.Notes)
	}
}
