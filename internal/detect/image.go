package detect

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// instruction is an instruction of a Dockerfile. CMD and ENTRYPOINT have one argument, the command
// of a shell, unless they have the JSON form.
type instruction struct {
	args []string
	json bool
	from Source
}

// command returns CMD or ENTRYPOINT as a command of the shell.
func (i instruction) command() string {
	if i.json {
		return commandLine(i.args)
	}
	return strings.Join(i.args, " ")
}

// exec returns the arguments of the JSON form, which is the only one that takes more arguments.
func (i instruction) exec() []string {
	if i.json {
		return i.args
	}
	return nil
}

// image is the last stage of a Dockerfile.
type image struct {
	file       string // the path in the tree
	base       string // the image that the stage is based on
	cmd, entry instruction
	ports      []Fact
	env        map[string]Fact // as app.env.NAME
	health     string          // HEALTHCHECK
	healthFrom Source
	workdir    string
	bases      []Fact   // FROM of every stage
	runs       []string // RUN of every stage
}

// imageReader reads the instructions of a Dockerfile.
type imageReader struct {
	*image // the current stage
	stages map[string]*image
	lex    *shell.Lex
	vars   []string // NAME=value, of ARG and ENV
}

// readImage reads a Dockerfile. A stage that is based on another stage has its instructions, too.
func readImage(file, text string) (*image, error) {
	result, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return &image{file: file}, err
	}
	r := imageReader{&image{file: file}, map[string]*image{}, shell.NewLex(result.EscapeToken), nil}
	for _, n := range result.AST.Children {
		i := instruction{json: n.Attributes["json"], from: Source{file, strconv.Itoa(n.StartLine)}}
		for arg := n.Next; arg != nil; arg = arg.Next {
			i.args = append(i.args, arg.Value)
		}
		if len(i.args) > 0 {
			r.read(strings.ToUpper(n.Value), i, n.Original)
		}
	}
	return r.image, nil
}

// expand replaces the variables of a word and removes its quotes.
func (r *imageReader) expand(word string) string {
	if value, _, err := r.lex.ProcessWord(word, shell.EnvsFromSlice(r.vars)); err == nil {
		return value
	}
	return word
}

// read applies an instruction to the current stage.
func (r *imageReader) read(name string, i instruction, line string) {
	switch name {
	case "ARG":
		for _, arg := range i.args {
			r.vars = append(r.vars, r.expand(arg))
		}
	case "FROM":
		base := r.expand(i.args[0])
		next := image{base: base}
		if stage := r.stages[base]; stage != nil {
			next = *stage
		}
		next.file, next.runs, next.bases = r.file, r.runs, append(r.bases, fact("", base, i.from))
		next.env = maps.Clone(next.env)
		if next.env == nil {
			next.env = map[string]Fact{}
		}
		r.image = &next
		if len(i.args) == 3 {
			r.stages[i.args[2]] = r.image
		}
	case "ENV":
		for arg := range slices.Chunk(i.args, 3) { // name, value, "=" or " "
			value := r.expand(arg[1])
			r.vars = append(r.vars, arg[0]+"="+value)
			r.env[arg[0]] = fact("app.env."+arg[0], value, i.from)
		}
	case "EXPOSE":
		for _, arg := range i.args {
			if port, protocol, _ := strings.Cut(r.expand(arg), "/"); atoi(port) > 0 && protocol != "udp" {
				r.ports = append(r.ports, fact("app.port", port, i.from))
			}
		}
	case "WORKDIR":
		dir := r.expand(i.args[0])
		if !path.IsAbs(dir) {
			dir = path.Join(r.workdir, dir)
		}
		r.workdir = path.Clean(dir)
	case "CMD":
		r.cmd = i
	case "ENTRYPOINT":
		r.entry, r.cmd = i, instruction{}
	case "HEALTHCHECK":
		r.health, r.healthFrom = line, i.from
	case "RUN":
		r.runs = append(r.runs, i.command())
	}
}

// baseOf returns the name and the version of an image: "node", "22.1".
func baseOf(ref string) (name, version string) {
	ref, _, _ = strings.Cut(ref, "@")
	name, tag, _ := strings.Cut(path.Base(ref), ":")
	return name, capture(`^v?(\d+(?:\.\d+)*)`, tag)
}

const probed = `https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::(?:\d+` +
	`|\$\{?[A-Z_]+(?::-\d+)?\}?))?(/[^\s"'|;)\\]+)`

// bases returns the images that the stages of the Dockerfile are based on.
func (p *project) bases() []Fact {
	file := p.at(p.first("Dockerfile Containerfile"))
	img, _ := readImage(file, p.tree.Text(file)) // dockerfile reports the error
	return img.bases
}

// fromImage returns the versions of the images of a tool that the Dockerfile is based on.
func (p *project) fromImage(tool string) (all []wanted) {
	for _, f := range p.bases() {
		if name, version := baseOf(f.Value); name == tool && version != "" {
			all = append(all, wanted{version, f.From})
		}
	}
	return all
}

// dockerfile is the Dockerfile of the app.
type dockerfile struct{ *project }

func (d dockerfile) find() {
	p, file := d.project, d.dockerfile
	if file == "" || !p.tree.Has(file) {
		file = p.at(p.first("Dockerfile Containerfile docker/Dockerfile build/Dockerfile deploy/Dockerfile"))
	}
	text := p.tree.Text(file)
	if strings.TrimSpace(text) == "" {
		return
	}
	img, err := readImage(file, text)
	if err != nil {
		p.say("%s cannot be read: %v", file, err)
		return
	}
	p.image = img
	if base, _ := baseOf(img.base); match(tooling, base) {
		p.noServer() // it serves the files of a build, on a port of its own
		delete(p.values, "app.ready.path")
		return
	}
	if len(img.ports) > 1 {
		p.say("%s exposes %d ports; abl uses the first", file, len(img.ports))
	}
	for _, f := range img.ports[:min(1, len(img.ports))] {
		p.listens(f.Value, f.From)
		p.server("", f.From)
	}
	p.set("app.ready.path", capture(probed, img.health), img.healthFrom)
	d.start(img)
}

// start records the command of the image if it runs in the repository as well.
func (d dockerfile) start(img *image) {
	from := img.cmd.from
	if img.cmd.args == nil {
		from = img.entry.from
	}
	whole := strings.TrimSpace(img.entry.command() + " " + img.cmd.command())
	for _, text := range []string{img.cmd.command(), whole} {
		if img.workdir != "" && img.workdir != "/" { // /app/server.js is server.js
			text = regexp.MustCompile(`(^|[\s=])`+regexp.QuoteMeta(img.workdir)+`/`).ReplaceAllString(text, "$1")
		}
		command := d.runnable(text)
		if command == "" {
			continue
		}
		d.addStart(start{command: command, from: from, port: atoi(img.env["PORT"].Value)})
		return
	}
}

// appEnv returns the variables of the image that the app may need.
func (i *image) appEnv() (all []Fact) {
	if i == nil || match(tooling, path.Base(i.base)) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(i.env)) {
		if f := i.env[name]; !match(imageVariable, name+"="+f.Value) {
			all = append(all, f)
		}
	}
	return all
}

// imageVariable matches variables about the image itself: tools, builds, and paths in its file system.
const imageVariable = `^(?:PATH|LANG|TZ|HOME|TERM|USER)=` +
	`|^(?:LC_|DEBIAN_|PIP|POETRY_|UV_|PYTHON|VIRTUAL_ENV|NPM_|npm_|YARN_|PNPM_|BUN_|NEXT_TELEMETRY|BUNDLE_|GEM_|RUBY` +
	`|GO|CGO_|CARGO_|RUST|JAVA_|MAVEN_|GRADLE_|COMPOSER_|PHP_|ABL_)` +
	`|^\w*(?:_ENV|_VERSION|_HOME)=|=(?:/|\w+:/[^/])|=.*\$|=$`
