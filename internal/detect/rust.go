package detect

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"abl/internal/toolchain"
)

// rust reads the packages of Cargo.
type rust struct {
	*project
	manifest struct {
		Package struct {
			Name       string `toml:"name"`
			DefaultRun string `toml:"default-run"`
		} `toml:"package"`
		Bin []struct {
			Name string `toml:"name"`
			Path string `toml:"path"`
		} `toml:"bin"`
		Dependencies map[string]any `toml:"dependencies"`
		Workspace    map[string]any `toml:"workspace"`
	}
}

func (r *rust) src(place string) Source { return r.project.src("Cargo.toml", place) }

func (r *rust) load() {
	r.decode("Cargo.toml", &r.manifest)
	for name, d := range r.manifest.Dependencies {
		if table, _ := d.(map[string]any); table["optional"] != true {
			r.deps[name] = r.src("dependencies." + name)
		}
	}
	r.creates("target")
	r.version()
	locked, file := "", "Cargo.toml"
	if r.has("Cargo.lock") {
		locked, file = " --locked", "Cargo.lock"
	} else if len(r.manifest.Dependencies) == 0 {
		return
	}
	from := r.project.src(file, "")
	r.install(from, "CARGO_HOME=.cargo-home cargo fetch"+locked, "crates", ".cargo-home")
	r.set("app.env.CARGO_HOME", "/workspace/src/"+r.at(".cargo-home"), from)
}

// version chooses the toolchain. A new Rust compiles packages for older versions, and Debian's Rust
// ignores the channel in rust-toolchain.
func (r *rust) version() {
	var all []wanted
	for file := range strings.FieldsSeq("rust-toolchain.toml rust-toolchain Cargo.toml") {
		oldest := capture(`(?m)^\s*(?:channel|rust-version)\s*=\s*"(\d+\.\d+)|^(\d+\.\d+)`, r.text(file))
		all = append(all, wanted{">=" + oldest, r.project.src(file, "")})
	}
	all = slices.DeleteFunc(all, func(w wanted) bool { return w.text == ">=" })
	if len(all) == 0 {
		for _, w := range r.fromImage("rust") {
			all = append(all, wanted{">=" + w.text, w.from})
		}
	}
	r.choose("rust", all)
	if !r.asked("toolchain.rust") {
		r.note("toolchain.rust", toolchain.Lines("rust")[0], r.project.src(r.first("Cargo.toml"), ""), "no file names a version")
	}
}

var rustSigns = signs{
	ports: []string{
		`"(?:0\.0\.0\.0|127\.0\.0\.1|\[::\]|localhost):(\d{2,5})"` +
			`|\(\[0, ?0, ?0, ?0\], ?(\d{2,5})\)|"(?:0\.0\.0\.0|127\.0\.0\.1)"\s*,\s*(\d{2,5})\)`,
		`#\[(?:arg|clap|structopt)\([^\]]*"[^"]*port[^"]*"[^\]]*default_value(?:_t)?\s*=\s*"?(\d{2,5})`,
		`env::var\("PORT"\)`,
	},
	http: `\bhyper(?:_util)?::server\b|\bhyper::Server\b`, // a client depends on hyper, too
	tcp:  `TcpListener::bind`,                             // a dependency shows HTTP
}

// rustMain matches the files that Cargo takes for programs.
const rustMain = `^src/(?:main|bin/[^/]+|bin/[^/]+/main)\.rs$`

func (r *rust) find() {
	r.depends("axum actix-web rocket warp tide poem salvo", func(string, Source) bool { return true })
	var mains []string
	commands := false // it has several, one of which may be a server
	for _, file := range r.sources("rust") {
		text, inner := r.code(file), r.inner(file)
		if match(rustMain, inner) || r.named(inner) != "" {
			mains = append(mains, file)
		}
		if kind, from := r.scan(file, text, rustSigns); kind != "" {
			r.server(kind, from)
		}
		commands = commands || strings.Contains(text, "Subcommand") || strings.Contains(text, ".subcommand(")
		r.route(file, text)
	}
	if commands && !r.deployed() {
		r.servers = slices.DeleteFunc(r.servers, func(f Fact) bool { return f.Value == "tcp" })
	}
	r.start(mains)
	r.check("test", "cargo test --offline", "tests", r.src(""))
}

// named returns the name that Cargo.toml gives to the program of a file, "" for none.
func (r *rust) named(file string) string {
	for _, b := range r.manifest.Bin {
		if path.Clean(b.Path) == file {
			return b.Name
		}
	}
	return ""
}

// start records how the program of the package starts.
func (r *rust) start(mains []string) {
	const run = "cargo run --offline --release"
	m := r.manifest
	nameOf := func(file string) string {
		inner := strings.TrimSuffix(strings.TrimSuffix(r.inner(file), ".rs"), "/main")
		if inner == "src" {
			inner = m.Package.Name
		}
		return cmp.Or(r.named(r.inner(file)), path.Base(inner))
	}
	switch {
	case m.Workspace != nil && m.Package.Name == "":
		r.ask("app.command", "Cargo.toml is a workspace of several packages")
	case len(mains) == 0:
		r.noServer()
		r.program("a library", "", r.src(""), "")
		r.ask("app.command",
			"the package is a library without a program: add a program that uses it, and enter its command here")
	case len(mains) > 1 && m.Package.DefaultRun == "":
		choices := []Fact{}
		for _, file := range mains {
			choices = append(choices, candidate(run+" --bin "+nameOf(file), Source{File: file}))
		}
		r.ask("app.command", "the package has several programs", choices...)
	case len(r.servers) > 0 && r.dir != "": // the workspace may be above, with the folder of the build
		r.try(run, Source{File: mains[0]})
	default:
		program := cmp.Or(m.Package.DefaultRun, nameOf(mains[0]))
		from := Source{File: mains[max(0, slices.IndexFunc(mains, func(file string) bool { return nameOf(file) == program }))]}
		if len(m.Bin) == 1 {
			program = cmp.Or(m.Bin[0].Name, program)
		}
		if len(r.servers) > 0 {
			r.try("cargo build --offline --release && ./target/release/"+program, from)
			return
		}
		r.program("a program", `cargo build --offline --release --quiet --manifest-path "$ABL_SRC/Cargo.toml" && `+
			`"$ABL_SRC/target/release/`+program+`"`, from, "")
	}
}
