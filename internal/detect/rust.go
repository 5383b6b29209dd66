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

// version chooses the toolchain. Rust compiles packages for older versions, and Debian's ignores the
// channel of rust-toolchain.
func (r *rust) version() {
	var all []wanted
	for file := range strings.FieldsSeq("rust-toolchain.toml rust-toolchain Cargo.toml") {
		oldest := capture(`(?m)^\s*(?:channel|rust-version)\s*=\s*"(\d+\.\d+)|^(\d+\.\d+)`, r.text(file))
		all = append(all, wanted{">=" + oldest, r.project.src(file, "")})
	}
	if r.choose("rust", all); !r.asked("toolchain.rust") {
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
	tcp: `TcpListener::bind`, // a dependency shows HTTP
}

func (r *rust) find() {
	r.depends("axum actix-web rocket warp hyper tide poem salvo", func(string, Source) bool { return true })
	var mains []string
	commands := false // it has several, one of which may be a server
	for _, file := range r.sources("rust") {
		text, inner := r.code(file), r.inner(file)
		if inner == "src/main.rs" || strings.HasPrefix(inner, "src/bin/") {
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

// start records how the program of the package starts.
func (r *rust) start(mains []string) {
	const run = "cargo run --offline --release"
	m := r.manifest
	nameOf := func(file string) string {
		if name := strings.TrimSuffix(path.Base(file), ".rs"); name != "main" {
			return name
		}
		return m.Package.Name
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
		if len(m.Bin) == 1 {
			program = cmp.Or(m.Bin[0].Name, program)
		}
		if len(r.servers) > 0 {
			r.try("cargo build --offline --release && ./target/release/"+program, Source{File: mains[0]})
			return
		}
		r.program("a program", `cargo build --offline --release --quiet --manifest-path "$ABL_SRC/Cargo.toml" && `+
			`"$ABL_SRC/target/release/`+program+`"`, Source{File: mains[0]}, "")
	}
}
