// Package scaffold creates a project: it plans the files that `abl init` writes, and writes them. It
// never overwrites a file, so a second run writes only missing files.
package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"abl"
	"abl/internal/detect"
	"abl/internal/yamlfile"
	"abl/prompts"
)

const (
	configFile = ".abl/config.yaml"
	schemaFile = ".abl/config.schema.json" // the first line of configFile names it
)

// Plan is the plan of `abl init`, and what `abl init --json` prints. The user sets some fields, and Make
// the others: the stack from the files, the kind from the files or http. In a project with a
// configuration, Src and Tests are from there.
type Plan struct {
	Stack   string `json:"stack"`
	Guessed bool   `json:"guessed"` // neither the user nor a file named the stack
	Kind    string `json:"kind"`    // of system
	Src     string `json:"src"`     // the Builder's workspace
	Tests   string `json:"-"`       // the Verifier's
	// Repo is the path of the repository relative to the project, of which Src is a clone; "" without
	// one. Dir is the folder in it to work on, "" for the whole.
	Repo    string `json:"repo,omitempty"`
	Dir     string `json:"dir,omitempty"`
	Version string `json:"version,omitempty"` // of the stack's language, from a file
	File    string `json:"version_from,omitempty"`
	Locked  bool   `json:"locked"` // npm ci installs the dependencies
	// Detected has the settings found in the repository, nil if the source begins empty.
	Detected *detect.Report `json:"detected,omitempty"`
	Ops      []Op           `json:"steps"`
	Skill    bool           `json:"-"` // write the page for coding agents, too
	Submit   []File         `json:"-"` // the template of a scheduler
}

// Make completes the plan p for the project. It changes nothing.
func Make(ctx context.Context, project fs.FS, p Plan) (Plan, error) {
	p.Src = cmp.Or(p.Src, "src")
	if p.Repo != "" {
		p.Src = ".abl/work/src"
	} else if _, err := fs.Lstat(project, configFile); err != nil && !plainDir(p.Src) {
		return p, fmt.Errorf("cannot use %q as the Builder's directory: want a plain path inside the project, "+
			"outside .abl and prompts", p.Src)
	}
	if p.Kind != "" && !slices.Contains(Kinds(), p.Kind) {
		return p, fmt.Errorf("unknown kind %q: want one of %s", p.Kind, strings.Join(Kinds(), ", "))
	}
	if p.Detected != nil {
		p.setDetected(*p.Detected)
	} else {
		p.guess(ctx, project)
	}
	files := p.files()
	if p.Skill {
		files = append(files, skill())
	}
	ops, err := Missing(project, append(files, p.Submit...))
	if err != nil {
		return p, err
	}
	if p.Skill {
		op, err := addSection(project)
		if err != nil {
			return p, err
		}
		ops = append(ops, op)
	}
	ignored, _ := fs.ReadFile(abl.Template(), "gitignore") // as files does
	src := p.Src + "/"
	if p.Repo != "" {
		src = ".abl/work/"
	}
	lines := append(strings.Fields(string(ignored)), src, cmp.Or(p.Tests, ".abl/tests")+"/")
	if p.Detected != nil {
		lines = append(lines, p.Detected.Ignore...)
	}
	ignore, err := AddLines(project, lines)
	p.Ops = append(ops, ignore)
	return p, err
}

// setDetected sets the fields of the plan from the report.
func (p *Plan) setDetected(r detect.Report) {
	p.Stack, p.Kind = r.Stack, cmp.Or(p.Kind, r.Get("app.kind"))
	p.Locked = r.Get("app.prepare") == "npm ci"
	for _, f := range r.Below("toolchain.") {
		p.Version, p.File = f.Value, f.From.File
	}
}

// File is a file of a new project.
type File struct {
	Path string
	Data []byte
}

// Missing plans the files that a project lacks. It keeps anything that exists at their paths, dangling links
// included.
func Missing(project fs.FS, files []File) (ops []Op, err error) {
	for _, f := range files {
		switch _, err := fs.Lstat(project, f.Path); {
		case err == nil:
			ops = append(ops, Op{Kind: Keep, Path: f.Path})
		case errors.Is(err, fs.ErrNotExist):
			ops = append(ops, Op{Kind: Write, Path: f.Path, Data: f.Data})
		default:
			return nil, fmt.Errorf("cannot read %q: %w", f.Path, err)
		}
	}
	return ops, nil
}

// files renders the template. Reading it cannot fail: it is embedded.
func (p Plan) files() (files []File) {
	template := abl.Template()
	stack, err := fs.ReadFile(template, "stacks/"+p.Stack+".yaml")
	if err != nil {
		stack, _ = fs.ReadFile(template, "stacks/none.yaml")
	}
	if p.Version != "" {
		stack = regexp.MustCompile(`(?m)^(# )?toolchain: .*$`).ReplaceAll(stack, fmt.Appendf(nil, "toolchain: {%s: %q}",
			p.Stack, p.Version))
	}
	if p.Detected != nil {
		found := settings{Report: *p.Detected, kind: p.Kind, repo: p.Repo}
		stack = []byte(found.render())
	} else {
		stack = []byte(p.fill("", string(stack)))
	}
	_ = fs.WalkDir(template, "project", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(template, name)
		text := strings.ReplaceAll(p.fill(name, string(data)), "@STACK@", strings.TrimSpace(string(stack)))
		files = append(files, File{strings.TrimPrefix(name, "project/"), []byte(text)})
		return err
	})
	files = append(files, File{schemaFile, abl.ConfigSchema})
	if data := p.image(template); data != nil {
		files = append(files, File{".abl/images/builder.Dockerfile", data})
	}
	for _, role := range []string{"builder", "verifier"} {
		files = append(files, File{path.Join("prompts", role+".md"), prompts.Copy(role)})
	}
	return files
}

// fill renders a text of the template. A line "@http,tcp LINE" is for these kinds of system, "@open LINE"
// for an unknown kind, "@own LINE" or "@adopted LINE" for such a source.
func (p Plan) fill(file, text string) string {
	source, dir := "own", ""
	if p.Repo != "" {
		source = "adopted"
	}
	if p.Dir != "" {
		name, _ := yamlfile.Marshal(p.Dir) // cannot fail for a string
		dir = ", dir: " + strings.TrimSpace(string(name))
	}
	kind, port := cmp.Or(p.Kind, "open"), "port 3000"
	if kind == "open" && strings.Contains(file, "/specs/") {
		kind = "command" // the example spec needs a kind
	}
	if p.Detected != nil {
		port = "port " + cmp.Or(p.Detected.Get("app.port"), "…")
	}
	values := strings.NewReplacer("@LANGUAGE@", languages()[p.Stack], "@KIND@", kind, "@SRC@", p.Src, "@REPO@", p.Repo,
		"@DIR@", dir, "@PORT@", port)
	only := func(line string) string {
		words, rest, _ := strings.Cut(line[1:], " ")
		if all := strings.Split(words, ","); slices.Contains(all, kind) || slices.Contains(all, source) {
			return rest
		}
		return ""
	}
	return values.Replace(regexp.MustCompile(`(?m)^@[a-z,]+ .*\n`).ReplaceAllStringFunc(text, only))
}

// image returns the Dockerfile of the Builder's image, nil without one.
func (p Plan) image(template fs.FS) []byte {
	if p.Detected != nil && len(p.Detected.Packages) > 0 {
		return dockerfile(*p.Detected)
	}
	data, _ := fs.ReadFile(template, "images/"+p.Stack+".Dockerfile")
	return data
}

// Kind is the kind of an Op.
type Kind string

// The kinds of Op.
const (
	Write Kind = "write" // a new file
	Add   Kind = "add"   // lines at the end of a new or existing file
	Keep  Kind = "keep"  // an existing file that stays

	Change Kind = "change" // new text for an existing file
)

// Op is one step of a plan.
type Op struct {
	Kind  Kind     `json:"do"`
	Path  string   `json:"path"`            // slash-separated, relative to the project
	Data  []byte   `json:"-"`               // the whole file; nil with Keep
	Lines []string `json:"lines,omitempty"` // with Add
}

// String describes the operation on one line.
func (o Op) String() string {
	switch o.Kind {
	case Write:
		return "write " + o.Path
	case Add:
		return fmt.Sprintf("add %d lines to %s", len(o.Lines), o.Path)
	case Change:
		return "change " + o.Path
	}
	return "keep " + o.Path
}

// Stacks returns the values of --stack.
func Stacks() []string { return detect.Stacks() }

// Kinds returns the values of --kind.
func Kinds() []string { return []string{"http", "tcp", "command"} }

// languages returns the names of the stacks' languages for project.md.
func languages() map[string]string {
	return map[string]string{
		"node": "JavaScript or TypeScript for Node.js", "python": "Python 3", "go": "Go", "rust": "Rust", "java": "Java",
		"ruby": "Ruby", "php": "PHP", "none": "…",
	}
}

// guess sets the stack, its version and the kind of a project whose source begins empty, by the files
// next to it. Without a known language, the stack of an empty directory is node, and of one with other
// files none.
func (p *Plan) guess(ctx context.Context, project fs.FS) {
	var paths []string
	others := false
	_ = fs.WalkDir(project, ".", func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil || name == ".":
			return nil // folders that cannot be read are left out
		case d.IsDir() && (strings.HasPrefix(base, ".") || base == "prompts"):
			return fs.SkipDir
		case d.Type().IsRegular():
			paths = append(paths, name)
		}
		others = others || !regexp.MustCompile(`^(?:\.|README|LICENSE)`).MatchString(name)
		if len(paths) >= detect.MaxPaths {
			return fs.SkipAll
		}
		return nil
	})
	tree := detect.New(paths, func(name string, _ int64) ([]byte, error) { return readRegular(project, name) })
	asked := p.Stack
	r := detect.Read(ctx, tree, "", detect.Wish{Stack: strings.TrimSuffix(asked, "none"), Kind: p.Kind})
	found := *p
	found.setDetected(r)
	switch {
	case asked == "none" || asked == "" && r.Stack == "none" && others:
		p.Stack, p.Kind = "none", found.Kind
	case r.Stack == "none":
		p.Stack = "node"
	default:
		p.Stack, p.Version, p.File = r.Stack, found.Version, found.File
	}
	p.Guessed, p.Kind = asked == "" && r.Stack == "none", cmp.Or(p.Kind, "http")
}

// plainDir reports whether a directory name can be written to YAML and .gitignore unchanged. It is stricter
// than config.yaml.
func plainDir(dir string) bool {
	plain := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
	if !plain.MatchString(dir) || path.Clean(dir) != dir {
		return false
	}
	first, _, _ := strings.Cut(strings.ToLower(dir), "/")
	return first != "prompts"
}
